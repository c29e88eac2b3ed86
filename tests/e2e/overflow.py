"""What of a page is cut off or sticks out of the window, for the browser tests and docs/take_pictures.py."""

OFFENDERS = """() => {
    const found = [], wide = window.innerWidth;
    const scrolling = document.scrollingElement;
    if (scrolling.scrollWidth > wide) found.push(`the window scrolls sideways: ${scrolling.scrollWidth} of ${wide}`);
    const main = document.querySelector("[data-testid='stMain']");
    if (main && main.scrollWidth > main.clientWidth + 1)
        found.push(`the page scrolls sideways: ${main.scrollWidth} of ${main.clientWidth}`);
    const free = "[data-testid='stDataFrame'], [data-testid='stTable'], [data-testid='stCode'], input, textarea, " +
        "pre, svg, .hidden, .sr-only, [data-testid='stTooltipContent'], [data-testid='stHeader'], " +
        ".st-key-unseen_title";
    const walk = (root, outer) => {
        for (const element of root.querySelectorAll("*")) {
            if (element.shadowRoot) walk(element.shadowRoot, element);
            if (element.closest(free) || outer?.closest(free)) continue;
            const box = element.getBoundingClientRect(), style = getComputedStyle(element);
            if (!box.width || !box.height || style.visibility === "hidden" || style.opacity === "0") continue;
            if (element.closest("[title]")?.title.trim()) continue;  // it can be read under the pointer
            const own = [...element.childNodes].filter(node => node.nodeType === 3 && node.textContent.trim());
            const said = (element.innerText ?? element.textContent).trim().replace(/\\s+/g, " ").slice(0, 60);
            const where = `${element.tagName.toLowerCase()} "${said}"`;
            if (own.length && box.right > wide + 1 && box.left < wide) found.push(`out of the window: ${where}`);
            const clips = ["hidden", "clip"].includes(style.overflowX);
            if (clips && said && box.width > 4 && element.scrollWidth > element.clientWidth + 1)
                found.push(`cut off, ${element.clientWidth} of ${element.scrollWidth} pixels: ${where}`);
            // lines of a list end in "…" where they are clamped: pressed, they are read whole
            const low = ["hidden", "clip"].includes(style.overflowY) && style.webkitLineClamp === "none";
            if (low && own.length && box.height > 4 && element.scrollHeight > element.clientHeight + 3)
                found.push(`cut off below, ${element.clientHeight} of ${element.scrollHeight} pixels: ${where}`);
        }
    };
    walk(document.body, null);
    return [...new Set(found)];
}"""
"""A list of sentences, empty where nothing offends. Tables, code, text boxes and drawings are left out, and so is what
can be read under the pointer."""

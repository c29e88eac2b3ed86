// Distributions side by side: a grey shape for all samples, bars for those shown, dark for those of them selected. Each
// series is a share of its own total, so that shapes compare however few samples are shown. Dragging takes a range.

const STATES = new WeakMap();
const SVG = "http://www.w3.org/2000/svg";

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

function drawNumber(root, facet, colors, send) {
  const plot = make("div", "plot", root);
  const svg = plot.appendChild(document.createElementNS(SVG, "svg"));
  const n = facet.all.length, totals = [sum(facet.all) || 1, sum(facet.shown) || 1];
  svg.setAttribute("viewBox", `0 0 ${n} 100`);
  svg.setAttribute("preserveAspectRatio", "none");
  const top = Math.max(...facet.all.map((v) => v / totals[0]), ...facet.shown.map((v) => v / totals[1]), 1e-9);
  const rect = (k, value, total, color, inset) => {
    const bar = svg.appendChild(document.createElementNS(SVG, "rect"));
    const height = (97 * value) / total / top;
    const look = { x: k + inset, y: 100 - height, width: 1 - 2 * inset, height, fill: color };
    for (const [name, v] of Object.entries(look)) bar.setAttribute(name, v);
    return bar;
  };
  const kept = [];
  for (let k = 0; k < n; k++) {
    rect(k, facet.all[k], totals[0], colors.all, 0);
    rect(k, facet.shown[k], totals[1], colors.shown, 0.14);
    if (facet.chosen) kept.push(rect(k, facet.chosen[k], totals[1], colors.chosen, 0.14));
  }
  let chosen = facet.chosen;
  const ends = make("div", "ends", root);
  const rest = () => { ends.replaceChildren(); for (const text of facet.ends) make("span", "", ends, text); };
  // the counts of a bar take the place of the axis's ends: a tooltip comes late, and covers the next figure
  const tell = (k) => {
    const filtered = totals[0] !== totals[1];
    ends.replaceChildren();
    make("span", "counts", ends, `${facet.spans[k]}: ${filtered ? `${many(facet.shown[k])} of ` : ""}` +
      `${many(facet.all[k])} rows` + (chosen ? `, ${many(chosen[k])} selected` : ""));
  };
  rest();
  plot.onpointerleave = rest;
  const veil = make("div", "window", plot);
  let range = facet.brush.length ? [facet.brush[0], facet.brush.at(-1)] : null;
  const show = () => {
    veil.hidden = !range;
    if (!range) return;
    veil.style.left = `${(100 * Math.min(...range)) / n}%`;
    veil.style.width = `${(100 * (Math.abs(range[1] - range[0]) + 1)) / n}%`;
  };
  show();
  const at = (event) => {
    const box = plot.getBoundingClientRect();
    return Math.min(n - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * n)));
  };
  let start = null, moved = false;
  plot.onpointerdown = (event) => { start = at(event); moved = false; plot.setPointerCapture(event.pointerId); };
  plot.onpointermove = (event) => {
    tell(at(event));
    if (start === null) return;
    const here = at(event);
    moved ||= here !== start;
    if (moved) { range = [start, here]; show(); }
  };
  plot.onpointerup = () => {
    if (start === null) return;
    start = null;
    // a click on a bar takes this bar; a click inside a range lets go of it
    send(moved ? [Math.min(...range), Math.max(...range)] : range ? [] : null);
  };
  plot.onclick = (event) => { if (!moved && !range) send([at(event)]); };
  plot.tabIndex = 0;
  plot.setAttribute("role", "group");
  plot.setAttribute("aria-label", `${facet.title}, ${facet.ends.join(" to ")}. Drag, or press the left and right ` +
    "arrows, to filter by a range; Shift moves its upper end, Escape clears it.");
  let waiting = 0;
  plot.onkeydown = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape" && range) range = null;
    else if (step && !range) range = [Math.floor(n / 3), Math.floor((2 * n) / 3)];
    else if (step) {
      const low = range[0] + (event.shiftKey ? 0 : step), high = range[1] + step;
      if (low < 0 || high >= n || high < low) return;
      range = [low, high];
    } else return;
    event.preventDefault();
    show();
    clearTimeout(waiting);
    waiting = setTimeout(() => send(range ?? []), 500);
  };
  return (counts) => {
    chosen = counts && facet.chosen ? facet.chosen.map((_, k) => counts.kept(facet.tally, k)) : facet.chosen;
    kept.forEach((bar, k) => {
      const height = (97 * chosen[k]) / totals[1] / top;
      bar.setAttribute("y", 100 - height);
      bar.setAttribute("height", height);
    });
  };
}

function drawClasses(root, facet, colors, send) {
  const totals = [sum(facet.all) || 1, sum(facet.shown) || 1];
  const top = Math.max(...facet.all.map((v) => v / totals[0]), ...facet.shown.map((v) => v / totals[1]), 1e-9);
  facet.labels.forEach((label, k) => {
    const bar = make("button", "bar", root);
    bar.type = "button";
    bar.setAttribute("aria-pressed", String(facet.brush.includes(k)));
    bar.disabled = facet.rest && k === facet.labels.length - 1;
    bar.title = `${label}: ${many(facet.shown[k])} shown of ${many(facet.all[k])} rows` +
      (facet.chosen ? `, ${many(facet.chosen[k])} selected` : "");
    make("span", "name", bar, label);
    const track = make("span", "track", bar);
    for (const [values, total, color] of [[facet.all, totals[0], colors.all], [facet.shown, totals[1], colors.shown],
      [facet.chosen, totals[1], colors.chosen]])
      if (values) {
        const part = make("i", "", track);
        part.style.width = `${(100 * values[k]) / total / top}%`;
        part.style.background = color;
      }
    if (facet.chosen) {
      bar.classList.add("share");
      make("span", "number", bar, facet.shown[k] ? percent(facet.chosen[k] / facet.shown[k]) : "");
    }
    bar.onclick = () =>
      send(facet.brush.includes(k) ? facet.brush.filter((other) => other !== k) : [...facet.brush, k]);
  });
}

// The selected share of each group as a bar, and a line where the share of all samples lies.
function drawShares(root, facet, colors, send) {
  const bars = facet.labels.map((label, k) => {
    const bar = make("button", "bar share", root);
    bar.type = "button";
    bar.setAttribute("aria-pressed", String(facet.brush.includes(k)));
    make("span", "name", bar, label);
    const track = make("span", "track", bar), part = make("i", "", track), line = make("b", "", track);
    bar.onclick = () => send(facet.brush.includes(k) ? [] : [k]);
    return { bar, part, line, number: make("span", "number", bar) };
  });
  const show = (selected, verdicts, ratio) => {
    const shares = selected.map((count, k) => (facet.n[k] ? count / facet.n[k] : 0));
    const most = Math.max(...shares, ratio, 1e-9);
    bars.forEach(({ bar, part, line, number }, k) => {
      bar.title = `${facet.labels[k]}: ${many(selected[k])} of ${many(facet.n[k])} selected, ${percent(shares[k])}; ` +
        `all rows ${percent(ratio)}; ${verdicts[k]}`;
      part.style.width = `${(100 * shares[k]) / most}%`;
      part.style.background = colors[verdicts[k]];
      line.style.left = `${(100 * ratio) / most}%`;
      number.textContent = percent(shares[k]);
    });
  };
  show(facet.selected, facet.verdicts, facet.ratio);
  return (counts) => {
    if (!counts) return show(facet.selected, facet.verdicts, facet.ratio);
    const at = (what) => facet.codes.map((code) => counts[what](facet.tally, code));
    show(at("kept"), at("verdict"), counts.share);
  };
}

function mount({ data, parentElement, setTriggerValue }) {
  if (!data) return;
  let state = STATES.get(parentElement);
  if (!state) {
    STATES.set(parentElement, (state = { root: document.createElement("div") }));
    parentElement.append(state.root);
    // while λ is dragged the map says what is selected
    state.hear = (event) => {
      if (!state.root.isConnected) STORE.bell.removeEventListener("counts", state.hear);
      else state.recount(event.detail);
    };
    state.recount = (counts) => { for (const recount of state.recounts) recount(counts); };
    STORE.bell.addEventListener("counts", state.hear);
  }
  const drawn = JSON.stringify(data);
  if (state.drawn === drawn) return;
  state.drawn = drawn;
  const { root } = state;
  root.className = data.small ? "strips small" : "strips";
  const focused = root.getRootNode().activeElement?.closest?.(".facet")?.dataset.name;
  root.replaceChildren();
  state.recounts = [];
  for (const facet of data.facets) {
    const box = make("div", "facet", root);
    box.dataset.name = facet.name;
    const head = make("div", "head", box);
    make("span", "", head, facet.title).title = facet.title;
    const send = (bars) => bars && setTriggerValue("brush", { name: facet.name, bars });
    if (facet.brush.length) {
      const clear = make("button", "", head, "✕ clear");
      clear.type = "button";
      clear.setAttribute("aria-label", `Clear ${facet.title}`);
      clear.onclick = () => send([]);
    }
    const recount = (facet.shares ? drawShares : facet.labels ? drawClasses : drawNumber)(box, facet, data.colors, send);
    if (recount && facet.tally)
      state.recounts.push((counts) => (counts && !counts.has(facet.tally) ? undefined : recount(counts)));
    if (focused === facet.name) box.querySelector(".plot, .bar")?.focus();
  }
  if (STORE.counts) state.recount(STORE.counts);
}

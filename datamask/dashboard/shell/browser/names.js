// Names of the regions, on every panel: buttons that stand where their region is densest, the largest regions first, as
// many as have room at this zoom, of the whole map at most so many. They are text, never markup.

const NAME = { height: 18, most: 196, between: 3, font: "600 13px ", first: 14 };

// What the server named: [code, name, x, y, sentence] each. The buttons are made anew only where it changed.
function takeNames(map, names, opened) {
  const known = JSON.stringify(names);
  const stale = map.panels.some((panel) => !panel.names);
  if (known !== map.knownNames || stale) {
    map.knownNames = known;
    const context = document.createElement("canvas").getContext("2d");
    context.font = NAME.font + getComputedStyle(map.root).fontFamily;
    map.regionNames = names.map(([code, name, x, y, sentence]) => ({ code, name, x, y, sentence,
      width: Math.min(NAME.most, Math.ceil(context.measureText(name).width) + 14) }));
    map.panels.forEach((panel, k) => {
      panel.names ??= make("div", "names", panel.stage);
      panel.names.replaceChildren();
      panel.names.setAttribute("role", "group");
      panel.names.setAttribute("aria-label", "Named regions");
      // the same names stand on every panel: one of them is enough to hear
      if (k) panel.names.setAttribute("aria-hidden", "true");
      panel.nameButtons = map.regionNames.map((region) => nameButton(map, panel, region, k));
    });
  }
  for (const panel of map.panels)
    panel.nameButtons.forEach((button, k) =>
      button.setAttribute("aria-pressed", String(opened.includes(map.regionNames[k].code))));
}

function nameButton(map, panel, region, place) {
  const button = make("button", "name", panel.names);
  button.type = "button";
  button.title = region.sentence;
  button.tabIndex = -1;
  make("span", "", button, region.name);
  // pressed by a key; the pointer's presses end at the panel, which may begin a lasso here too
  button.onclick = (event) => { if (!event.detail) map.open(region.code); };
  button.onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step || event.key === "Enter" || event.key === " ") event.stopPropagation();
    if (!step) return;
    event.preventDefault();
    const seen = panel.nameButtons.filter((other) => !other.hidden);
    seen[(seen.indexOf(button) + step + seen.length) % seen.length].focus();
  };
  button.region = region;
  button.hidden = true;
  return button;
}

// What is selected of each region at the λ that is drawn; null: what the server said.
function recountNames(map, counts) {
  for (const panel of map.panels)
    for (const button of panel.nameButtons) {
      const { code, name, sentence } = button.region;
      if (counts && !counts.has("names")) continue;
      const n = counts?.n("names", code), now = counts && percent(counts.kept("names", code) / n);
      const press = sentence.slice(sentence.lastIndexOf(")") + 1); // what a press does
      button.title = !counts ? sentence
        : `${name}: ${many(n)} rows, ${now} of them selected (all rows: ${percent(counts.share)})${press}`;
    }
}

// Put them where they belong, as the view lies now.
function placeNames(map) {
  if (!map.regionNames?.length) return;
  const [above, below] = map.data.filled ? [34, 44 + map.strip] : [4, 4], half = NAME.height / 2;
  // a name never lies over the ring of a marked sample
  const rings = map.data.marked.map(([x, y]) => [map.toX(x) - 12, map.toY(y) - 12, map.toX(x) + 12, map.toY(y) + 12]);
  const many = NAME.first * Math.max(1, map.view.zoom) ** 2;
  const taken = [...rings], seats = map.regionNames.map(({ x, y, width }) => {
    if (taken.length - rings.length >= many) return null;
    const [left, top] = [map.toX(x) - width / 2, map.toY(y) - half];
    const box = [left - NAME.between, top - NAME.between, left + width + NAME.between, top + NAME.height + NAME.between];
    if (left < 4 || left + width > map.width - 4 || top < above || top + NAME.height > map.height - below) return null;
    if (taken.some(([a, b, c, d]) => box[0] < c && box[2] > a && box[1] < d && box[3] > b)) return null;
    taken.push(box);
    return [left, top];
  });
  const first = seats.findIndex(Boolean);
  map.panels.forEach((panel, place) => panel.nameButtons.forEach((button, k) => {
    button.hidden = !seats[k];
    button.tabIndex = !place && k === first ? 0 : -1;
    if (seats[k]) {
      button.style.width = `${map.regionNames[k].width}px`;
      button.style.transform = `translate(${seats[k][0]}px, ${seats[k][1]}px)`;
    }
  }));
  map.root.dataset.names = String(taken.length - rings.length);
}

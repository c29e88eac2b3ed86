// The sample under the pointer: which one it is and what it says.

// The drawn sample at a place of the panel, at most so many CSS pixels away, or -1. What a region or a filter leaves
// out does not answer.
function nearest(map, x, y, reach = NEAR) {
  if (!map.ground || !map.view) return -1;
  const { points, cell } = map.ground, passing = cell && map.dimming?.passing, px = map.fromX(x), py = map.fromY(y);
  let best = (reach / map.scale) ** 2, found = -1;
  for (let i = 0; i < points.length / 2; i++) {
    const dx = points[2 * i] - px, dy = points[2 * i + 1] - py, far = dx * dx + dy * dy;
    // later ones lie above earlier ones
    if (far > best || (passing && !passing[i])) continue;
    if (!map.bright || map.bright[cell ? cell[i] : i]) { best = far; found = i; }
  }
  return found;
}

// Show the label of a drawn sample beside the pointer; -1 hides it.
function point(map, found, event) {
  if (found < 0) {
    map.tip.hidden = true;
    if (map.hovered >= 0) { map.hovered = -1; map.outline(); }
    return;
  }
  if (found !== map.hovered) {
    map.hovered = found;
    map.outline();
    tell(map, found);
  }
  map.tip.hidden = false;
  const box = map.root.getBoundingClientRect();
  const x = event.clientX - box.left, y = event.clientY - box.top;
  const right = x + 16 + map.tip.offsetWidth <= box.width;
  map.tip.style.left = `${Math.max(0, right ? x + 14 : x - 14 - map.tip.offsetWidth)}px`;
  map.tip.style.top = `${Math.max(0, Math.min(y + 12, box.height - map.tip.offsetHeight))}px`;
}

// A drawn sample's id, quality and the beginning of its text. Foreign text: it is shown as text, never as markup.
function labelOf({ ends, letters }, found) {
  return new TextDecoder().decode(letters.subarray(ends[found], ends[found + 1])).split("\n");
}

function tell(map, found) {
  const { cell, counts } = map.ground;
  const [name, ...lines] = labelOf(map.ground, found);
  map.tip.replaceChildren();
  make("b", "", map.tip, name);
  for (const line of lines) make("div", "", map.tip, line);
  const mark = cell ? cell[found] : found;
  const told = [];
  for (const { layer } of map.panels) {
    if (!layer?.codes.length) continue;
    const { before = "", after = "", format, names } = layer.hover, value = layer.values?.[mark];
    const number = value === undefined ? "" : Number.isFinite(value) ? said(value, format) : "unknown";
    const line = (names ? (names[layer.codes[mark]] ?? "") : "") + before + number + after;
    if (line && !lines.includes(line)) told.push(line);
  }
  const hits = cell && map.dimming?.hits;
  const held = cell && (hits ? `${many(hits[mark])} of ${many(counts[mark])} rows shown` :
    `${many(counts[mark])} rows`);
  if (cell) make("div", "", map.tip, `Hexagon: ${held}, ${told.join(", ")}`);
  else if (told.length) make("div", "", map.tip, told.join(" · "));
}

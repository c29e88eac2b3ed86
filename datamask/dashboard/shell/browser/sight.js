// Where a map was moved and zoomed to, kept in the page's address: written once a hand rests, in the place of what stood
// there, so that it is no step of Back. The server takes note of the same letters, and then writes no others over them.

const SIGHT_RESTS = 600; // milliseconds without a move
const DIGITS = 7; // of a place; a pixel of the closest view needs six

// As datamask/dashboard/map/shared_view.py reads it; nothing where all of the map is shown.
function sightText(map) {
  const { x, y, zoom } = map.view, whole = map.whole;
  const same = (a, b) => Math.abs(a - b) < 1e-9;
  if (same(x, whole.x) && same(y, whole.y) && same(zoom, 1)) return "";
  const numbers = [x, y, zoom].map((number) => String(Number(number.toPrecision(DIGITS))));
  return `${map.data.scope.split(" ").at(-1)}.${numbers.join(",")}`;
}

// Everything else in the address keeps its letters: one that is spelled otherwise would be a step of Back.
function placeInAddress(name, text) {
  const { pathname, search, hash } = location, parts = search.slice(1).split("&").filter(Boolean);
  const place = parts.findIndex((part) => part.startsWith(`${name}=`));
  const entry = text ? [`${name}=${encodeURIComponent(text).replaceAll("%20", "+")}`] : [];
  if (place >= 0) parts.splice(place, 1, ...entry);
  else parts.push(...entry);
  const query = parts.length ? `?${parts.join("&")}` : "";
  if (query !== search) history.replaceState(history.state, "", `${pathname}${query}${hash}`);
}

// To be called at every move.
function moved(map) {
  if (!map.data?.addressed) return;
  clearTimeout(map.resting);
  map.resting = setTimeout(() => {
    const text = sightText(map);
    if (text === map.sight) return;
    map.sight = text;
    placeInAddress("at", text);
    STORE.bell.dispatchEvent(new CustomEvent("ask",
      { detail: { name: map.data.name, question: { wants: "sight", sight: text } } }));
  }, SIGHT_RESTS);
}

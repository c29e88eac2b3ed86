// Where a map was moved and zoomed to: told to the server once a hand rests, which keeps it in the view and its address.

const SIGHT_RESTS = 600; // milliseconds without a move
const DIGITS = 7; // of a place; a pixel of the closest view needs six
const LEAST_ZOOM = 0.2, MOST_ZOOM = 400;

const kindOf = (map) => map.data.scope.split(" ").at(-1);

// `UMAP.3.25,-1.5,4`: projection, what lies in the middle, zoom; nothing where all of the map is shown.
function sightText(map) {
  const { x, y, zoom } = map.view, whole = map.whole;
  const same = (a, b) => Math.abs(a - b) < 1e-9;
  if (same(x, whole.x) && same(y, whole.y) && same(zoom, 1)) return "";
  const numbers = [x, y, zoom].map((number) => String(Number(number.toPrecision(DIGITS))));
  return `${kindOf(map)}.${numbers.join(",")}`;
}

// The way back, of what the view says: all of the map where that is of another projection, or nonsense.
function sightOf(map) {
  const [kind, ...rest] = map.data.at.split(".");
  const [x, y, zoom] = rest.join(".").split(",").map(Number);
  const known = kind === kindOf(map) && [x, y, zoom].every(Number.isFinite) && zoom >= LEAST_ZOOM && zoom <= MOST_ZOOM;
  return known ? { x, y, zoom } : map.whole;
}

// To be called at every move.
function moved(map) {
  clearTimeout(map.resting);
  map.resting = setTimeout(() => {
    const text = sightText(map);
    if (text !== map.sight) map.setStateValue("sight", (map.told = map.sight = text));
  }, SIGHT_RESTS);
}

// Where a map was moved and zoomed to: told to the server once a hand rests, which writes it into the page's address.

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

// To be called at every move.
function moved(map) {
  if (!map.data?.addressed) return;
  clearTimeout(map.resting);
  map.resting = setTimeout(() => {
    const text = sightText(map);
    if (text !== map.sight) map.setStateValue("sight", (map.sight = text));
  }, SIGHT_RESTS);
}

// Where the samples lie dense: lines around a half, four fifths and all but a twentieth of them, found once per ground in
// its own coordinates and drawn once per view, into the picture that the marks are stamped on.

const CELLS = 96, EDGE = 6, HOLDING = [0.5, 0.8, 0.95], LINE = 0.17; // cells beyond the view, for whole lines; as VEIL

// The lines as pieces, four numbers each. Each sample counts in its cell; three running means make that smooth.
function contoursOf({ points, view: [least, right, lowest, high] }) {
  const pieces = [], density = new Float32Array(CELLS * CELLS), within = CELLS - 2 * EDGE;
  const wide = (right - least) / within, tall = (high - lowest) / within, left = least - EDGE * wide, low = lowest - EDGE * tall;
  for (let i = 0; i < points.length; i += 2) {
    const column = Math.floor((points[i] - left) / wide), row = Math.floor((points[i + 1] - low) / tall);
    if (column >= 0 && row >= 0 && column < CELLS && row < CELLS) density[row * CELLS + column]++;
  }
  for (let pass = 0; pass < 3; pass++)
    for (const [next, across] of [[1, CELLS], [CELLS, 1]])
      for (let line = 0; line < CELLS; line++) {
        const old = Array.from({ length: CELLS }, (_, k) => density[line * across + k * next]);
        old.forEach((value, k) => { density[line * across + k * next] = ((old[k - 1] ?? 0) + value + (old[k + 1] ?? 0)) / 3; });
      }
  const falling = density.slice().sort().reverse(), total = falling.reduce((sum, value) => sum + value, 0);
  for (const share of HOLDING) {
    let held = 0;
    const level = falling.find((value) => (held += value) >= share * total);
    lineAt(density, level, (x, y) => pieces.push(left + (x + 0.5) * wide, low + (y + 0.5) * tall));
  }
  return Float32Array.from(pieces);
}

// Marching squares: where the four sides of each square between cells cross the level, joined in pairs.
function lineAt(density, level, put) {
  for (let y = 0; y < CELLS - 1; y++)
    for (let x = 0; x < CELLS - 1; x++) {
      const corners = [[x, y], [x + 1, y], [x + 1, y + 1], [x, y + 1]];
      corners.forEach(([a, b], k) => {
        const [c, d] = corners[(k + 1) % 4], one = density[b * CELLS + a], other = density[d * CELLS + c];
        const along = (level - one) / (other - one);
        if (one >= level !== other >= level) put(a + along * (c - a), b + along * (d - b));
      });
    }
}

// The page's ground with the lines on it, as pixels; the same array for as long as nothing of it changes.
function groundPixels(map, { width, height, paper, ink, scale, left, top }) {
  const name = [width, height, paper, scale, left, top].join(" "), before = map.groundDrawn, { ground } = map;
  if (before?.name === name && before.ground === ground) return before.pixels;
  const pixels = before?.pixels.length === width * height ? before.pixels : new Int32Array(width * height);
  const line = veiled(paper, ink, LINE), pieces = (ground.contours ??= contoursOf(ground));
  const shades = Array.from({ length: 17 }, (_, k) => packColor(paper.map((part, c) => Math.round(part + ((line[c] - part) * k) / 16))));
  pixels.fill(shades[0]);
  const put = (x, y, share) => {
    if (share > 0 && x >= 0 && y >= 0 && x < width && y < height) pixels[y * width + x] = shades[Math.ceil(16 * share)];
  };
  for (let k = 0; k < pieces.length; k += 4)
    drawPiece(pieces[k] * scale + left, top - pieces[k + 1] * scale, pieces[k + 2] * scale + left, top - pieces[k + 3] * scale, put);
  map.groundDrawn = { name, ground, pixels };
  return pixels;
}

// A thin line: at each step along its longer side the two pixels next to it share its color.
function drawPiece(x0, y0, x1, y1, put) {
  if (Math.abs(y1 - y0) > Math.abs(x1 - x0)) return drawPiece(y0, x0, y1, x1, (x, y, share) => put(y, x, share));
  if (x0 > x1) return drawPiece(x1, y1, x0, y0, put);
  for (let x = Math.round(x0); x < Math.round(x1); x++) {
    const y = y0 + ((y1 - y0) * (x - x0)) / (x1 - x0), row = Math.floor(y);
    put(x, row, 1 - (y - row));
    put(x, row + 1, y - row);
  }
}

// Where the samples lie dense: lines around a half, four fifths and all but a twentieth of them, found once per ground in
// its own coordinates and drawn once per view, into the picture that the marks are stamped on.

const CELLS = 96, HOLDING = [0.5, 0.8, 0.95], LINE = 0.17; // the last as VEIL

// The lines as one path. Each sample counts in its cell; three running means in each direction make that smooth.
function contoursOf({ points, view: [left, right, low, high] }) {
  const path = new Path2D(), density = new Float32Array(CELLS * CELLS), wide = (right - left) / CELLS, tall = (high - low) / CELLS;
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
  const falling = [...density].sort((a, b) => b - a), total = falling.reduce((sum, value) => sum + value, 0);
  for (const share of HOLDING) {
    let held = 0;
    lineAt(path, density, falling.find((value) => (held += value) >= share * total),
      (x, y) => [left + (x + 0.5) * wide, low + (y + 0.5) * tall]);
  }
  return path;
}

// Marching squares: where the four sides of each square between cells cross the level, joined in pairs.
function lineAt(path, density, level, place) {
  for (let y = 0; y < CELLS - 1; y++)
    for (let x = 0; x < CELLS - 1; x++) {
      const corners = [[x, y], [x + 1, y], [x + 1, y + 1], [x, y + 1]], crossed = [];
      corners.forEach(([a, b], k) => {
        const [c, d] = corners[(k + 1) % 4], one = density[b * CELLS + a], other = density[d * CELLS + c];
        if (one >= level === other >= level) return;
        const along = (level - one) / (other - one);
        crossed.push(place(a + along * (c - a), b + along * (d - b)));
      });
      crossed.forEach((at, k) => (k % 2 ? path.lineTo(...at) : path.moveTo(...at)));
    }
}

// The page's ground with the lines on it, as pixels; the same array for as long as nothing of it changes.
function groundPixels(map, { width, height, paper, ink, scale, left, top }) {
  const name = [width, height, paper, scale, left, top].join(" ");
  if (map.groundDrawn?.name === name && map.groundDrawn.ground === map.ground) return map.groundDrawn.pixels;
  const canvas = map.groundDrawn?.canvas ?? new OffscreenCanvas(1, 1);
  Object.assign(canvas, { width, height });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.fillStyle = `rgb(${paper})`;
  context.fillRect(0, 0, width, height);
  context.setTransform(scale, 0, 0, -scale, left, top);
  context.lineWidth = map.ratio / scale;
  context.strokeStyle = `rgb(${veiled(paper, ink, LINE)})`;
  context.stroke((map.ground.contours ??= contoursOf(map.ground)));
  const pixels = new Int32Array(context.getImageData(0, 0, width, height).data.buffer);
  map.groundDrawn = { name, ground: map.ground, canvas, pixels };
  return pixels;
}

// Drawing marks into pixels by hand: no graphics card needed, the same picture on every machine, and 150 000 marks in
// tens of milliseconds. Every shape is rasterised once per size, four times for half-pixel steps, and then stamped.

const STAMPS = new Map();
const FINE = 4;
const AT_ONCE = 128; // hexagons in one path: a path of five thousand takes ten times as long to fill as forty of these
const VEIL = 0.11; // of the way from the paper to its ink: the one tone of all samples that are left out

const SHAPES = {
  circle: (x, y) => x * x + y * y <= 1,
  square: (x, y) => Math.abs(x) <= 0.86 && Math.abs(y) <= 0.86,
  diamond: (x, y) => Math.abs(x) + Math.abs(y) <= 1,
  triangle: (x, y) => y <= 0.66 && y >= -1 + 0.02 && Math.abs(x) <= (y + 1) * 0.56,
  cross: (x, y) => Math.abs(x) <= 0.9 && Math.abs(y) <= 0.9 && (Math.abs(x - y) <= 0.5 || Math.abs(x + y) <= 0.5),
};

const packColor = ([red, green, blue]) => 0xff000000 | (blue << 16) | (green << 8) | red;

// A colour of the page, by the name of its property, as [red, green, blue].
function pageColor(element, name) {
  const pen = new OffscreenCanvas(1, 1).getContext("2d");
  pen.fillStyle = getComputedStyle(element).getPropertyValue(name).trim() || "#888888";
  return [1, 3, 5].map((at) => parseInt(pen.fillStyle.slice(at, at + 2), 16)); // the browser writes it as #rrggbb
}

// Four stamps of one shape and diameter: coverage 0 to 255 of w x w pixels; index 1 is half a pixel right, 2 half down.
function stampsOf(shape, diameter) {
  const name = `${shape} ${diameter.toFixed(2)}`;
  let found = STAMPS.get(name);
  if (found) return found;
  if (STAMPS.size > 400) STAMPS.clear();
  const inside = SHAPES[shape] ?? SHAPES.circle;
  const radius = diameter / 2;
  const half = Math.ceil(radius) + 1;
  const width = 2 * half + 1;
  found = [];
  for (let variant = 0; variant < 4; variant++) {
    const cover = new Uint8Array(width * width);
    const cx = half + 0.25 + 0.5 * (variant & 1), cy = half + 0.25 + 0.5 * (variant >> 1);
    for (let row = 0; row < width; row++)
      for (let column = 0; column < width; column++) {
        let hits = 0;
        for (let a = 0; a < FINE; a++)
          for (let b = 0; b < FINE; b++)
            if (inside((column + (b + 0.5) / FINE - cx) / radius, (row + (a + 0.5) / FINE - cy) / radius)) hits++;
        cover[row * width + column] = Math.round((255 * hits) / (FINE * FINE));
      }
    // single pixels that are hit, as runs: offsets from the mark's pixel, so that nothing empty is visited
    const dx = [], dy = [], covers = [];
    cover.forEach((value, k) => {
      if (value) { dx.push((k % width) - half); dy.push(Math.floor(k / width) - half); covers.push(value); }
    });
    found.push({ half, dx: Int16Array.from(dx), dy: Int16Array.from(dy), cover: Uint8Array.from(covers) });
  }
  STAMPS.set(name, found);
  return found;
}

// Blend one mark into a picture of opaque pixels (0xffbbggrr) that is wide enough to hold all of it.
function stampInside(pixels, width, x, y, stamp, color, opacity) {
  const { dx, dy, cover } = stamp;
  const redBlue = color & 0xff00ff, green = color & 0x00ff00;
  const center = y * width + x;
  for (let k = 0; k < cover.length; k++) {
    const at = center + dy[k] * width + dx[k];
    const a = (cover[k] * opacity + 255) >> 8;
    if (a >= 250) { pixels[at] = color; continue; }
    const below = pixels[at];
    const rb = below & 0xff00ff, g = below & 0x00ff00;
    // two channels at once: what is carried between them lies outside the masks
    pixels[at] = 0xff000000 | ((rb + (Math.imul(redBlue - rb, a) >> 8)) & 0xff00ff) |
      ((g + (Math.imul(green - g, a) >> 8)) & 0x00ff00);
  }
}

const veiled = (paper, ink, veil = VEIL) => paper.map((part, k) => Math.round(part + (ink[k] - part) * veil));

// Draw samples.
// frame: {pixels, width, height, xs, ys, order, paper, ink, growth}: places in device pixels, which marks in which
// order, the page's ground and letters as [red, green, blue], how much larger those are that a filter lets through
// look: {codes, colors, shapes, sizes, bright}; size: diameter of a mark in device pixels
function drawSamples(frame, look, size) {
  const { pixels, width, height, xs, ys, order, paper, ink, growth } = frame;
  const { codes, colors, shapes, sizes, bright } = look;
  const stamps = Array.from({ length: Math.max(1, shapes.length) }, (_, k) =>
    stampsOf(shapes[k] ?? "circle", Math.max(1, size * growth * (sizes[k] ?? 1))));
  const plain = stamps[0], veil = stampsOf("circle", Math.max(1, size));
  const packed = new Int32Array(256);
  for (let c = 0; c < 256; c++) packed[c] = packColor(colors.subarray(4 * c, 4 * c + 3));
  // one grey for all that is left out, so that no dimmed colour passes for another class; and opaque, because many
  // clear ones on top of each other would add up and be bright
  const dim = packColor(veiled(paper, ink));
  // what lets others through lies below what does not: selected marks are covered by nothing
  for (const above of [false, true]) for (let k = 0; k < order.length; k++) {
    const i = order[k];
    const code = codes[i];
    const dimmed = bright && !bright[i];
    if (above !== (!dimmed && colors[4 * code + 3] === 255)) continue;
    const px = xs[i], py = ys[i];
    const x = Math.floor(px), y = Math.floor(py);
    const variants = dimmed ? veil : code < stamps.length ? stamps[code] : plain;
    const stamp = variants[(px - x >= 0.5 ? 1 : 0) + (py - y >= 0.5 ? 2 : 0)];
    // marks cut by the edge are left out: the frame hides that, and nothing need be tested per pixel
    if (x < stamp.half || y < stamp.half || x >= width - stamp.half || y >= height - stamp.half) continue;
    stampInside(pixels, width, x, y, stamp, dimmed ? dim : packed[code], bright ? 255 : colors[4 * code + 3]);
  }
}

// Draw hexagons: grouped by byte, so that few paths hold thousands of cells. What is left out is one grey, as
// of single samples; on it stands what a filter lets through, in full colour, smaller where less of a cell is shown.
function drawHexagons(context, { centers, reach }, toX, toY, scale, look, page) {
  const { codes, colors, bright } = look, { paper, ink, growth } = page;
  const { width, height } = context.canvas;
  const full = scale * reach.reduce((most, one) => Math.max(most, one), 0); // no cell grows into the next one
  const groups = new Map();
  const add = (name, x, y, r) => {
    let group = groups.get(name);
    if (!group) groups.set(name, (group = { paths: [], cells: 0 }));
    if (group.cells++ % AT_ONCE === 0) group.paths.push(new Path2D());
    const path = group.paths.at(-1);
    const w = (r * Math.sqrt(3)) / 2;
    path.moveTo(x + w, y + r / 2); path.lineTo(x, y + r); path.lineTo(x - w, y + r / 2);
    path.lineTo(x - w, y - r / 2); path.lineTo(x, y - r); path.lineTo(x + w, y - r / 2);
    path.closePath();
  };
  if (bright) groups.set(-1, { paths: [], cells: 0 }); // first, so that the others are drawn on top of it
  for (let i = 0; i < codes.length; i++) {
    const x = toX(centers[2 * i]), y = toY(centers[2 * i + 1]), r = reach[i] * scale;
    if (x < -r || y < -r || x > width + r || y > height + r) continue;
    if (bright && bright[i] < 255) add(-1, x, y, r);
    if (!bright || bright[i]) add(codes[i], x, y, bright ? Math.min(full, r * growth * Math.sqrt(bright[i] / 255)) : r);
  }
  for (const [code, { paths }] of groups) {
    const color = code < 0 ? veiled(paper, ink) : colors.subarray(4 * code, 4 * code + 3);
    context.globalAlpha = code < 0 ? 1 : colors[4 * code + 3] / 255;
    context.fillStyle = `rgb(${color.join(", ")})`;
    for (const path of paths) context.fill(path);
  }
  context.globalAlpha = 1;
}

// Even-odd rule; corners as two arrays. The server decides with all samples; this only dims the drawn ones at once.
function insidePolygon(xs, ys, px, py) {
  let odd = false;
  for (let i = 0, j = xs.length - 1; i < xs.length; j = i++)
    if (ys[i] > py !== ys[j] > py && px < xs[j] + ((py - ys[j]) * (xs[i] - xs[j])) / (ys[i] - ys[j])) odd = !odd;
  return odd;
}

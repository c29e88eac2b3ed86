// The map: linked panels of one ground. The view and the region live here, so nothing the server sends can move them.

const MAPS = new WeakMap();
const AGAIN = 1000; // milliseconds until a parcel that did not come is asked for again

class LinkedMap {
  constructor(parent) {
    this.root = make("div", "map");
    this.root.held = this; // read by tests: what it draws
    parent.append(this.root);
    this.root.setAttribute("role", "group");
    this.toolbar = make("div", "bar", this.root);
    this.toolbar.setAttribute("role", "toolbar");
    this.toolbar.setAttribute("aria-label", "Tools of the map");
    this.toolbar.setAttribute("aria-orientation", "vertical");
    this.buttons = {};
    for (const [name, label, path] of TOOLS) this.button(name, label, path, () => this.take(name));
    make("span", "gap", this.toolbar);
    for (const [name, label, path] of ACTIONS) this.button(name, label, path, () => this.act(name));
    this.front = new Front(this);
    this.grid = make("div", "panels", this.root);
    this.slider = new LambdaSlider(this, this.root);
    this.help = make("div", "hidden", this.root, HELP);
    this.help.id = `help-${Math.random().toString(36).slice(2)}`;
    this.live = make("div", "hidden", this.root);
    this.live.setAttribute("aria-live", "polite");
    this.tip = make("div", "tip", this.root);
    this.tip.hidden = true;
    this.panels = [];
    this.regions = [];
    this.strip = 0;
    this.hovered = -1;
    this.take("lasso");
    this.watch = new ResizeObserver(() => this.resized());
    this.watch.observe(this.grid);
    this.watch.observe(this.slider.root);
    this.root.onkeydown = (event) => {
      if (event.key !== "Escape" || !this.full) return;
      event.stopPropagation();
      this.fill(false);
    };
  }

  button(name, label, path, run) {
    const button = make("button", "", this.toolbar);
    button.type = "button";
    button.title = label;
    button.setAttribute("aria-label", label);
    button.innerHTML = `<svg viewBox="0 0 24 24" aria-hidden="true"><path d="${path}"/></svg>`;
    button.onclick = run;
    this.buttons[name] = button;
  }

  destroy() {
    this.asked = null;
    this.watch.disconnect();
    cancelAnimationFrame(this.planned);
    clearTimeout(this.resting);
    this.slider.elsewhere(null);
    this.root.remove();
  }

  // -- what the server says ---------------------------------------------------------------------------------------

  update({ data, setStateValue, setTriggerValue }) {
    Object.assign(this, { setStateValue, setTriggerValue, asked: data });
    if (!this.data) this.accept(data, {}); // its place, before there is a picture
    this.gather(data);
  }

  // What the server names is shown once all of it is here, and until then what was shown before. A parcel that the server
  // has let go of is there again once the page was drawn anew.
  async gather(data) {
    const parts = Object.entries(data.parcels);
    let bodies;
    try {
      bodies = await Promise.all(parts.map(([, address]) => parcelAt(address)));
    } catch ({ gone }) {
      if (this.asked !== data) return;
      if (gone && gone !== this.gone) this.setTriggerValue("missing", (this.gone = gone));
      setTimeout(() => { if (this.asked === data) this.gather(data); }, AGAIN);
      return;
    }
    this.gone = null;
    if (this.asked === data) this.accept(data, Object.fromEntries(parts.map(([part], k) => [part, bodies[k]])));
  }

  accept(data, parcels) {
    const before = this.data;
    Object.assign(this, { data, parcels });
    this.root.setAttribute("aria-label", data.alt);
    this.root.classList.toggle("filled", data.filled);
    if (before?.panels !== data.panels) this.build(data.panels);
    if (before?.height !== data.height || before?.filled !== data.filled) this.resized();
    if (!before) [this.said, this.told] = [data.heard, data.told];
    // a drawing of the server that knows all that was said here says what is drawn
    if (before?.scope !== data.scope || data.heard === this.said)
      this.regions = data.regions.map(([kind, xs, ys]) => ({ kind, xs, ys }));
    takeNames(this, data.names, data.opened);
    const { ground, dimming, lambdas, counts } = parcels;
    if (ground && (ground !== this.ground || before.scope !== data.scope)) {
      this.ground = ground;
      this.marks = ground.centers ?? ground.points;
      this.hovered = -1;
      this.look(sightOf(this));
      this.sight = sightText(this);
    } else if (ground && data.at !== before.at && data.told === this.told && data.at !== this.sight) {
      this.look(sightOf(this)); // as at a step of Back
      this.sight = sightText(this);
    }
    this.dimming = dimming;
    this.slider.receive(data.slider, lambdas, counts);
    this.brighten();
    this.recolour();
  }

  build(count) {
    this.grid.replaceChildren();
    this.panels = Array.from({ length: count }, (_, k) => {
      const frame = make("div", "panel", this.grid);
      const panel = { slot: String(k), frame, title: make("div", "title", frame), stage: make("div", "stage", frame) };
      panel.nameButtons = []; // until the names are taken
      panel.base = make("canvas", "", panel.stage);
      panel.over = make("canvas", "", panel.stage);
      panel.blank = make("div", "blank", panel.stage);
      panel.key = make("div", "key", frame);
      panel.stage.tabIndex = 0;
      panel.stage.setAttribute("role", "application");
      // it is called by what it is; its legend describes it
      for (const part of [panel.blank, panel.key]) part.id = `${this.help.id}-${part.className}-${k}`;
      panel.stage.setAttribute("aria-describedby", `${panel.blank.id} ${panel.key.id} ${this.help.id}`);
      listen(this, panel);
      return panel;
    });
    this.take(this.tool);
    this.resized();
  }

  // Each panel shows what the server sent for it, or, while lambda moves, what stands at the slider.
  recolour() {
    for (const panel of this.panels) {
      const layer = this.slider.layer(panel) ?? this.parcels[panel.slot];
      if (layer && layer.id !== panel.layer?.id) {
        panel.layer = layer;
        this.explain(panel);
      }
    }
    this.redraw();
  }

  explain(panel) {
    const { layer, stage, key, title, blank } = panel;
    title.textContent = title.title = layer.title;
    blank.textContent = layer.text;
    key.replaceChildren();
    for (const [shape, color, name] of layer.key) {
      const entry = make("span", "entry", key);
      entry.innerHTML = `<svg viewBox="0 0 10 10" aria-hidden="true">${GLYPHS[shape] ?? GLYPHS.circle}</svg>`;
      entry.firstChild.style.fill = color;
      make("span", "", entry, name).title = name;
    }
    if (layer.bar) {
      const stops = layer.bar.stops.map(([at, color]) => `${color} ${100 * at}%`);
      make("div", "scale", key).style.background = `linear-gradient(to right, ${stops.join(", ")})`;
      const ticks = make("div", "ticks", key);
      for (const [, text] of layer.bar.ticks) make("span", "", ticks, text);
    }
    stage.setAttribute("aria-label", `Map: ${layer.title}`);
  }

  // -- the view: a point in the middle and CSS pixels per unit, the same in both directions ------------------------

  home() {
    this.look(this.whole);
    moved(this);
  }

  get whole() {
    const [x0, x1, y0, y1] = this.ground.view;
    return { x: (x0 + x1) / 2, y: (y0 + y1) / 2, zoom: 1 };
  }

  look({ x, y, zoom }) {
    this.view = { x, y, zoom };
    this.redraw();
  }

  get scale() {
    const [x0, x1] = this.ground.view;
    // title and key lie on a filled map: the first view keeps clear of them
    const high = this.height - (this.data.filled ? CLEAR + this.strip : 0);
    return (this.view.zoom * Math.min(this.width, high)) / (x1 - x0);
  }

  toX(x) { return (x - this.view.x) * this.scale + this.width / 2; }
  // the middle of what the slider leaves free
  get middle() { return (this.height - this.strip) / 2; }
  toY(y) { return this.middle - (y - this.view.y) * this.scale; }
  fromX(x) { return (x - this.width / 2) / this.scale + this.view.x; }
  fromY(y) { return (this.middle - y) / this.scale + this.view.y; }

  zoom(factor, x = this.width / 2, y = this.middle) {
    if (!this.view) return;
    const at = [this.fromX(x), this.fromY(y)];
    this.view.zoom = Math.min(MOST_ZOOM, Math.max(LEAST_ZOOM, this.view.zoom * factor));
    this.view.x += at[0] - this.fromX(x);
    this.view.y += at[1] - this.fromY(y);
    this.redraw();
    moved(this);
  }

  pan(dx, dy) {
    this.view.x -= dx / this.scale;
    this.view.y += dy / this.scale;
    this.redraw();
    moved(this);
  }

  // Two beside each other, or below each other where that draws larger maps into the same room; three as one and two.
  arrange() {
    const { filled } = this.data, n = this.panels.length, between = GAP * (n - 1);
    const [first] = this.panels;
    // title and key of a map that is not filled stand above and below its panels
    const height = !this.full ? this.data.height : filled ? "100vh" : "calc(100vh - 90px)";
    first.stage.style.height = height;
    const [wide, high] = [this.grid.clientWidth, first.stage.clientHeight];
    const trio = filled && n === 3 && wide >= ONE_AT_A_TIME;
    const stacked = filled && !trio && Math.min(wide, (high - between) / n) > Math.min((wide - between) / n, high);
    this.grid.classList.toggle("stacked", stacked);
    this.grid.classList.toggle("trio", trio);
    this.front.arrange(!filled && !this.full && n > 1 && wide < ONE_AT_A_TIME);
    this.panels.forEach(({ stage }, k) => {
      const small = trio && k, parts = stacked ? n : small ? 2 : 1;
      const apart = GAP * (parts - 1) + (small ? Math.max(0, this.strip - 1) : 0); // the slider's border is theirs too
      stage.style.height = `calc((${height} + 2px - ${apart}px) / ${parts} - 2px)`; // each has two borders
    });
  }

  resized() {
    const stage = this.panels[0]?.stage;
    if (!stage || !this.data) return;
    this.strip = this.slider.root.hidden ? 0 : this.slider.root.offsetHeight;
    this.root.style.setProperty("--strip", `${this.strip}px`);
    this.arrange();
    this.width = stage.clientWidth;
    this.height = stage.clientHeight;
    this.ratio = globalThis.devicePixelRatio || 1;
    for (const panel of this.panels)
      for (const canvas of [panel.base, panel.over]) {
        canvas.width = Math.max(1, Math.round(this.width * this.ratio));
        canvas.height = Math.max(1, Math.round(this.height * this.ratio));
      }
    this.picture = null;
    this.draw();
  }

  // -- drawing ----------------------------------------------------------------------------------------------------

  // What is bright follows from the server's filter and from the region, which is known here at once.
  brighten() {
    const count = (this.marks?.length ?? 0) / 2;
    const filter = this.dimming?.bright?.length === count ? this.dimming.bright : null;
    this.bright = this.regions.length ? new Uint8Array(count) : filter;
    for (const { xs, ys } of this.regions) {
      const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
      for (let i = 0; i < count; i++) {
        const x = this.marks[2 * i], y = this.marks[2 * i + 1];
        if (this.bright[i] || x < left || x > right || y < low || y > high) continue;
        if (insidePolygon(xs, ys, x, y)) this.bright[i] = filter ? filter[i] : 255;
      }
    }
    // few among many must be seen at a glance: they are drawn nearly as large as if they were alone
    const clear = this.clear = this.bright ? this.bright.reduce((sum, value) => sum + (value > 0), 0) : count;
    this.growth = Math.min(2, (count / Math.max(1, clear)) ** 0.15);
  }

  redraw() {
    cancelAnimationFrame(this.planned);
    this.planned = requestAnimationFrame(() => this.draw());
  }

  draw() {
    if (!this.ground || !this.view || !this.width) return;
    const began = performance.now();
    const { ratio } = this;
    const paper = pageColor(this.root, "--st-background-color"), ink = pageColor(this.root, "--st-text-color");
    const scale = this.scale * ratio, left = this.toX(0) * ratio, top = this.toY(0) * ratio;
    const frame = this.ground.centers ? null : this.places(scale, left, top);
    for (const panel of this.panels) {
      const canvas = panel.base, context = canvas.getContext("2d");
      const look = panel.layer && { ...panel.layer, bright: this.bright };
      const drawn = look && look.codes.length === this.marks.length / 2;
      if (frame) {
        this.picture ??= new ImageData(canvas.width, canvas.height);
        frame.pixels = new Int32Array(this.picture.data.buffer);
        const { width, height } = canvas;
        if (drawn) frame.pixels.set(groundPixels(this, { width, height, paper, ink, scale, left, top }));
        else frame.pixels.fill(packColor(paper));
        Object.assign(frame, { paper, ink, growth: this.growth });
        // marks grow a little with the zoom and with the panel: what is apart may be seen better
        const large = Math.min(1.5, Math.max(0.9, Math.min(this.width, this.height) / 330));
        const size = this.ground.size * large * ratio * Math.min(2.5, Math.max(0.8, this.view.zoom ** 0.3));
        if (drawn) drawSamples(frame, look, size);
        context.putImageData(this.picture, 0, 0);
      } else {
        context.fillStyle = `rgb(${paper})`;
        context.fillRect(0, 0, canvas.width, canvas.height);
        if (drawn) {
          const [toX, toY] = [(x) => x * scale + left, (y) => top - y * scale];
          drawHexagons(context, this.ground, toX, toY, scale, look, { paper, ink, growth: this.growth });
        }
      }
    }
    this.outline();
    placeNames(this);
    this.buttons.clear.hidden = !this.regions.length;
    // read by tests and measurements: how long the last picture took, where it stands, how many marks are not dimmed
    this.root.dataset.clear = String(this.clear ?? 0);
    this.root.dataset.milliseconds = (performance.now() - began).toFixed(1);
    this.root.dataset.view = JSON.stringify({ x: this.view.x, y: this.fromY(this.height / 2), scale: this.scale });
    this.root.dataset.drawn = String(this.panels.filter((panel) => panel.layer?.codes.length).length);
  }

  // Places of all samples in device pixels, and those in view: the dimmed ones first, so that they cover nothing.
  places(scale, left, top) {
    const { points } = this.ground, count = points.length / 2;
    const { width, height } = this.panels[0].base;
    if (this.xs?.length !== count) [this.xs, this.ys] = [new Float32Array(count), new Float32Array(count)];
    const order = new Uint32Array(count), late = new Uint32Array(count);
    let dimmed = 0, clear = 0;
    for (let i = 0; i < count; i++) {
      const x = points[2 * i] * scale + left, y = top - points[2 * i + 1] * scale;
      this.xs[i] = x;
      this.ys[i] = y;
      if (x < 0 || y < 0 || x >= width || y >= height) continue;
      if (this.bright && !this.bright[i]) order[dimmed++] = i;
      else late[clear++] = i;
    }
    order.set(late.subarray(0, clear), dimmed);
    return { width, height, xs: this.xs, ys: this.ys, order: order.subarray(0, dimmed + clear) };
  }

  // Regions, the sample under the pointer and the chosen one, in every panel.
  outline() {
    if (!this.view) return;
    const style = getComputedStyle(this.root);
    const text = style.color, paper = style.getPropertyValue("--st-background-color");
    const shapes = [...this.regions, ...(this.drawing ? [this.drawing] : [])];
    for (const { over } of this.panels) {
      const context = over.getContext("2d");
      context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
      context.clearRect(0, 0, this.width, this.height);
      for (const { xs, ys } of shapes) {
        context.beginPath();
        xs.forEach((x, k) => context.lineTo(this.toX(x), this.toY(ys[k])));
        context.closePath();
        // a halo in the page's colour, so that the line shows on dark and on pale marks alike
        for (const [color, width, dash] of [[paper, 4, []], [text, 1.5, [4, 3]]]) {
          context.strokeStyle = color;
          context.lineWidth = width;
          context.setLineDash(dash);
          context.stroke();
        }
      }
      context.setLineDash([]);
      const rings = this.data.marked.map(([x, y]) => [x, y, 8, 2.5]);
      if (this.hovered >= 0)
        rings.push([this.ground.points[2 * this.hovered], this.ground.points[2 * this.hovered + 1], 6, 1.5]);
      for (const [x, y, radius, width] of rings)
        for (const [color, extra] of [[paper, 2.5], [text, 0]]) {
          context.beginPath();
          context.arc(this.toX(x), this.toY(y), radius, 0, 7);
          context.strokeStyle = color;
          context.lineWidth = width + extra;
          context.stroke();
        }
    }
  }

  // -- tools ------------------------------------------------------------------------------------------------------

  take(tool) {
    this.tool = tool;
    for (const [name] of TOOLS) this.buttons[name].setAttribute("aria-pressed", String(name === tool));
    for (const panel of this.panels) panel.stage.dataset.tool = tool;
  }

  act(name) {
    if (name === "in") this.zoom(1.5);
    if (name === "out") this.zoom(1 / 1.5);
    if (name === "home") this.home();
    if (name === "clear") this.settle([]);
    if (name === "full") this.fill(!this.full);
  }

  // All of the window, above everything else there is; Escape or the button leads back.
  fill(full) {
    this.full = full;
    // the top layer: no container of the page can clip it, and no permission is asked for
    this.root.popover = full ? "manual" : null;
    if (full) this.root.showPopover();
    this.root.classList.toggle("full", full);
    const label = full ? "Leave full screen (Escape)" : "Full screen (F)";
    this.buttons.full.setAttribute("aria-pressed", String(full));
    this.buttons.full.setAttribute("aria-label", label);
    this.buttons.full.title = label;
    this.resized();
    (this.panels[this.front.place] ?? this.panels[0])?.stage.focus();
  }

  // Make a drawn sample the one to read, where the page wants to know.
  mark(found) {
    if (found < 0 || !this.data.picking) return;
    this.live.textContent = `Marked ${labelOf(this.ground, found)[0]}`;
    this.setTriggerValue("picked", this.ground.rows[found]);
  }

  // Show the samples of a named region, or all again.
  open(code) {
    this.setTriggerValue("named", code);
  }

  settle(regions) {
    this.regions = regions;
    this.drawing = null;
    this.brighten();
    this.redraw();
    const inside = this.bright ? this.bright.reduce((sum, value) => sum + (value > 0), 0) : 0;
    this.live.textContent = regions.length ? `Region drawn around ${inside} marks` : "Region removed";
    this.setStateValue("drawn", { scope: this.data.scope, number: ++this.said,
      regions: regions.map(({ kind, xs, ys }) => [kind, xs, ys]) });
  }
}

function mount(component) {
  const { parentElement, data } = component;
  if (!data) return;
  let map = MAPS.get(parentElement);
  if (!map) MAPS.set(parentElement, (map = new LinkedMap(parentElement)));
  map.update(component);
  return () => {
    map.destroy();
    MAPS.delete(parentElement);
  };
}

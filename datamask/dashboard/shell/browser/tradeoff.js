// The trade-off: the solved λ as points of quality and diversity, and the current one as a dot that is dragged along them.
// The dot is the λ slider of the map in another place: what it does, and what it shows, goes through the slider.

const FIGURES = new WeakMap();
const SVG = "http://www.w3.org/2000/svg";
const WIDE = 217, HIGH = 206, EDGE = 14; // CSS pixels; the last is kept free around
const LEAST = -0.12, MOST = 1.05; // of both shares

const toX = (share) => EDGE + ((share - LEAST) / (MOST - LEAST)) * (WIDE - 2 * EDGE);
const toY = (share) => HIGH - EDGE - ((share - LEAST) / (MOST - LEAST)) * (HIGH - 2 * EDGE);
const placeOf = ({ meters }) => [toX(meters[0].share), toY(meters[1].share)];
const within = ([x, y]) => x >= EDGE && x <= WIDE - EDGE && y >= EDGE && y <= HIGH - EDGE;

class Tradeoff {
  constructor(parent) {
    this.svg = parent.appendChild(document.createElementNS(SVG, "svg"));
    this.svg.setAttribute("viewBox", `0 0 ${WIDE} ${HIGH}`);
    this.svg.setAttribute("class", "tradeoff");
    this.svg.setAttribute("role", "group");
    this.svg.onpointerdown = (event) => {
      if (event.button || !STORE.slider?.movable) return;
      this.svg.setPointerCapture(event.pointerId);
      this.held = true;
      this.follow(event);
    };
    this.svg.onpointermove = (event) => this.held && this.follow(event);
    this.svg.onpointerup = this.svg.onpointercancel = () => {
      if (this.held) STORE.slider?.release();
      this.held = false;
    };
    this.hear = () => {
      if (!this.svg.isConnected) STORE.bell.removeEventListener("slider", this.hear);
      else this.show();
    };
    STORE.bell.addEventListener("slider", this.hear);
  }

  // The λ whose place on the line through the solved ones is nearest to the pointer.
  follow(event) {
    const box = this.svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * WIDE, y = ((event.clientY - box.top) / box.height) * HIGH;
    const solved = STORE.slider.points, places = solved.map(placeOf);
    let best = Infinity, lamb = STORE.slider.at;
    places.forEach(([x0, y0], k) => {
      const [x1, y1] = places[k + 1] ?? [x0, y0], long = (x1 - x0) ** 2 + (y1 - y0) ** 2;
      const along = long ? Math.min(1, Math.max(0, ((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / long)) : 0;
      const far = Math.hypot(x0 + along * (x1 - x0) - x, y0 + along * (y1 - y0) - y);
      const next = (solved[k + 1] ?? solved[k]).lamb;
      if (far < best) [best, lamb] = [far, solved[k].lamb + along * (next - solved[k].lamb)];
    });
    STORE.slider.drag(lamb);
  }

  receive(data) {
    this.data = data;
    this.show();
  }

  show() {
    const { svg } = this, { points = [], point = null } = STORE.slider ?? {};
    svg.replaceChildren();
    const add = (kind, name, look, text, into = svg) => {
      const made = into.appendChild(document.createElementNS(SVG, kind));
      made.setAttribute("class", name);
      for (const [key, value] of Object.entries(look)) made.setAttribute(key, value);
      if (text) made.textContent = text;
      return made;
    };
    add("path", "axis", { d: `M${EDGE} ${toY(0)}H${WIDE - EDGE}M${toX(0)} ${EDGE}V${HIGH - EDGE}` });
    add("text", "term", { x: toX(0) + 5, y: toY(0) - 6 }, "quality →");
    add("text", "term", { x: toX(0) + 5, y: EDGE + 34 }, "↑ diversity");
    const inside = points.filter((each) => within(placeOf(each)));
    add("polyline", "line", { points: inside.map((each) => placeOf(each).join()).join(" ") });
    for (const each of inside) {
      const [cx, cy] = placeOf(each);
      add("circle", "solved", { cx, cy, r: 2.5 });
    }
    for (const [k, name] of ["random", "best scores"].entries()) this.baseline(add, k, name);
    if (!point || point.meters.some(({ share }) => share === null)) return;
    const [x, y] = placeOf(point), [cx, cy] = [Math.min(WIDE - EDGE, Math.max(EDGE, x)), Math.min(HIGH - EDGE, Math.max(EDGE, y))];
    add("circle", "dot", { cx, cy, r: 8 });
    const worth = point.meters.map(({ term, words }) => `${term} ${words}`).join(", ");
    svg.setAttribute("aria-label", `Trade-off at ${point.name}: ${worth}. Drag the dot, or use the λ slider.`);
    svg.dataset.shown = point.lamb ?? point.name; // read by tests
  }

  // Random rows, and the best scores as an arrow at the edge where these lie far below.
  baseline(add, k, name) {
    if (!this.data.ticks.length) return;
    const [x, y] = [toX(this.data.ticks[0][k].share), toY(this.data.ticks[1][k].share)], beyond = !within([x, y]);
    const [left, top] = [Math.min(WIDE - EDGE, Math.max(EDGE, x)), Math.min(HIGH - EDGE, Math.max(EDGE, y))];
    const { compare, baseline: shown } = STORE.slider ?? {}, group = add("g", compare ? "baseline press" : "baseline", {});
    if (compare) this.pressable(group, () => compare(k), name, shown === k);
    const d = beyond ? `M${left - 1} ${top - 9}h2v5h4l-5 6l-5 -6h4z` : `M${left - 4} ${top - 4}h8v8h-8z`;
    const worth = this.data.ticks.map((term) => term[k].words).join(", ");
    add("title", "", {}, worth, group);
    add("path", "", { d }, "", group);
    add("text", "name", { x: k ? left - 8 : left + 5, y: k ? top : top + 15, "text-anchor": k ? "end" : "start" }, name, group);
  }

  // By pointer and by keyboard, whose place is kept, as all is drawn anew.
  pressable(group, press, name, shown) {
    for (const [key, value] of Object.entries({ role: "button", tabindex: 0, "aria-pressed": shown, "aria-label": `Show ${name} on the map` }))
      group.setAttribute(key, value);
    group.onpointerdown = (event) => event.stopPropagation();
    group.onclick = () => {
      press();
      this.svg.querySelector(`[aria-label="Show ${name} on the map"]`)?.focus();
    };
    group.onkeydown = (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault(); // the space bar would scroll
      group.onclick();
    };
  }
}

function mount({ data, parentElement }) {
  if (!data) return;
  let figure = FIGURES.get(parentElement);
  if (!figure) FIGURES.set(parentElement, (figure = new Tradeoff(parentElement)));
  figure.receive(data);
}

// The lambda slider of a map. Solved selections travel once, with their numbers; dragging shows the nearest of them and
// asks nobody. Letting go tells the server once, which draws the page with the selection at just that lambda.

const RESTS = 200; // milliseconds without a key after which the keyboard has let go
const THUMB = 16; // CSS pixels, as in the style sheet: the middle of the thumb marks the value

class LambdaSlider {
  constructor(map, parent) {
    this.map = map;
    this.root = make("div", "lambda", parent);
    this.root.setAttribute("role", "group");
    this.root.setAttribute("aria-label", "Balance λ of the map");
    // words above, so that the slider keeps its place however many lines they take
    this.notes = make("div", "notes", this.root);
    const line = make("div", "line", this.root);
    this.name = make("label", "value", line, "λ ");
    this.typed = make("input", "", this.name);
    Object.assign(this.typed, { type: "number", min: "0", max: "1", step: "0.01" });
    this.typed.onchange = () => {
      if (this.typed.value !== "") this.moveTo(Math.min(1, Math.max(0, Number(this.typed.value))));
      this.ask(this.at);
    };
    make("span", "end", line, "diversity");
    this.rail = make("div", "rail", line);
    this.signs = make("div", "signs", this.rail);
    this.input = make("input", "", this.rail);
    Object.assign(this.input, { type: "range", min: "0", max: "1", step: "0.01", value: "0.5" });
    this.input.setAttribute("aria-label", "Balance λ: 0 is diversity alone, 1 quality alone");
    make("span", "end", line, "quality");
    this.button = make("button", "", line);
    this.home = make("button", "home", line);
    for (const button of [this.button, this.home]) button.type = "button";
    this.points = [];
    this.turn = 0; // when a hand was last on it
    this.asked = 0; // when it was last let go
    this.rests = true; // whether the page has followed
    this.touched = false;
    this.moved = false;
    this.at = 0.5;
    this.waiting = 0;
    this.byKeys = false;
    this.input.oninput = () => this.drag();
    this.input.onchange = () => this.release();
    this.input.onpointerdown = () => { this.byKeys = false; };
    this.input.onkeydown = () => { this.byKeys = true; };
    this.input.onblur = () => this.waiting && this.ask(this.at); // before whatever is pressed next
    this.button.onclick = () => this.press();
    this.home.onclick = () => {
      this.touched = false;
      this.at = this.state.home;
      this.ask(null);
      this.show();
      this.input.focus();
    };
  }

  // -- what the server says ---------------------------------------------------------------------------------------

  receive(state, solved, counts) {
    Object.assign(this, { state, solved, counted: counts });
    this.root.hidden = !state;
    if (!state) return this.elsewhere(false);
    this.root.classList.toggle("dark", state.dark);
    const { current } = state;
    this.points = (solved?.points ?? []).map((point, place) => ({ ...point, place }))
      .filter(({ lamb }) => lamb !== current?.lamb).concat(current ?? []).sort((a, b) => a.lamb - b.lamb);
    // what was drawn before the slider moved on does not move it back
    this.rests = !this.turn || state.heard === this.turn;
    if (this.rests) Object.assign(this, { at: state.at, touched: state.touched });
    this.mark();
    this.show(false);
  }

  // -- what a hand does -------------------------------------------------------------------------------------------

  // As a hand on the slider would: the dot of the trade-off, or a number that was typed.
  moveTo(lamb) {
    this.input.value = String(lamb); // to its steps
    this.drag();
  }

  drag() {
    Object.assign(this, { turn: Date.now(), rests: false, touched: true });
    this.at = Number(this.input.value);
    this.show();
  }

  release() {
    clearTimeout(this.waiting);
    // each arrow key is a change of its own; a pointer lets go once
    if (this.byKeys) this.waiting = setTimeout(() => this.ask(this.at), RESTS);
    else this.ask(this.at);
  }

  // The selection at a lambda; null: the one it began with.
  ask(lamb) {
    clearTimeout(this.waiting);
    this.waiting = 0;
    this.turn = this.asked = Date.now();
    this.rests = false;
    this.map.setStateValue("moved", { lamb, turn: this.turn });
  }

  press() {
    this.map.setTriggerValue("pressed", this.state.press);
  }

  // -- what is shown ----------------------------------------------------------------------------------------------

  // The page's own selection; under a hand the one that stands for a lambda: its own, or the nearest one.
  get point() {
    if (this.rests) return this.state.current;
    let nearest = null;
    for (const point of this.points)
      if (!nearest || Math.abs(point.lamb - this.at) <= Math.abs(nearest.lamb - this.at) + 1e-9) nearest = point;
    return nearest;
  }

  // What a panel shows in the place of its own layer; null: its own.
  layer(panel) {
    if (!this.moved || Number(panel.slot) !== this.state.panel) return null;
    const { solved, point } = this, { place } = point, id = `${solved.id} ${place}`;
    if (this.drawn?.id === id) return this.drawn;
    const { marks, shapes, sizes, colors } = solved;
    const whole = solved.codes?.subarray(place * marks, (place + 1) * marks);
    this.drawn = { id, shapes, sizes, colors, codes: whole ?? unpacked(solved.bits, place, marks),
      values: solved.values?.subarray(place * marks, (place + 1) * marks),
      title: point.title, key: point.key, bar: point.bar, hover: point.value_words, text: "" };
    return this.drawn;
  }

  show(paint = true) {
    const { state, point, at, touched } = this;
    this.elsewhere(!!point && point !== state.current);
    this.input.value = String(at);
    this.input.disabled = this.points.length < 2 && !state.answers;
    this.typed.value = at.toFixed(2);
    this.typed.disabled = this.input.disabled;
    this.button.hidden = !state.press;
    this.button.textContent = this.button.title = state.label;
    this.home.hidden = !touched || this.input.disabled;
    this.home.textContent = this.home.title = state.back;
    this.notes.replaceChildren();
    const say = (words, name) => words && make("span", name, this.notes, words);
    const near = point && Math.abs(point.lamb - at) >= 5e-3 ? `shown: λ ${point.lamb.toFixed(2)}` : "";
    if (point) {
      const worth = point.meters.map(({ term, words }) => `${term} ${words}`).join(", ");
      this.input.setAttribute("aria-valuetext", `λ ${at.toFixed(2)}: ${worth}`);
    }
    say(near, "note");
    say(near && !this.rests && this.asked === this.turn ? "solving" : state.words, "note");
    for (const { kind, words } of state.marks) {
      const entry = say(words, `mark ${kind}`);
      if (entry) entry.prepend(make("i", ""));
    }
    // read by tests: which selection is on the map
    this.root.dataset.shown = touched && point ? String(point.lamb) : "";
    STORE.slider = { points: this.points, point, at, movable: !this.input.disabled, drag: (lamb) => this.moveTo(lamb),
      release: () => this.ask(this.at) };
    STORE.bell.dispatchEvent(new CustomEvent("slider"));
    if (paint) this.map.recolour();
  }

  // Whether the map draws another selection than the page around it. All that cannot follow at once is dimmed by style
  // sheets until it does: the map's own for what lies on it, the page's for what lies around it.
  elsewhere(moved) {
    this.map.root.classList.toggle("moved", moved);
    // another map on the page has no say in it
    if (moved || this.moved) document.documentElement.toggleAttribute("data-lambda-moved", moved);
    if (moved || this.moved) this.tell(moved ? this.point : null);
    this.moved = moved;
    this.count(moved ? countsAt(this.counted, this.point.lamb) : null);
  }

  // Have the answer bar say what is under the hand; null: what the page shows.
  tell(point) {
    STORE.answer = point && { ...point, note: point.run ? `run ${this.state.run}` : point.note };
    STORE.bell.dispatchEvent(new CustomEvent("answer", { detail: STORE.answer }));
  }

  // Have the shares on the map and around it follow while the page does not; null: they are the page's again.
  count(counts) {
    if (!counts && !this.counts) return;
    this.counts = STORE.counts = counts; // kept for panels that are drawn anew while the hand is on the slider
    this.map.root.classList.toggle("counted", !!counts);
    document.documentElement.toggleAttribute("data-lambda-counted", !!counts);
    recountNames(this.map, counts);
    STORE.bell.dispatchEvent(new CustomEvent("counts", { detail: counts }));
  }

  mark() {
    this.signs.replaceChildren();
    const place = (low, high, kind, title) => {
      const sign = make("span", kind, this.signs);
      sign.title = title;
      sign.style.left = `calc(${THUMB / 2}px + (100% - ${THUMB}px) * ${low})`;
      if (high > low) sign.style.width = `calc((100% - ${THUMB}px) * ${high - low})`;
    };
    for (const { low, high, kind, words } of this.state.marks) place(low, high, high > low ? `${kind} band` : kind, words);
    for (const { lamb, verdict, words } of this.state.tried) place(lamb, lamb, verdict, words);
    for (const { lamb } of this.solved?.points ?? []) place(lamb, lamb, "solved", `solved at λ ${lamb}`);
  }
}

// One packed row of bits, as bytes of 0 and 1.
function unpacked(bits, row, count) {
  const width = Math.ceil(count / 8), codes = new Uint8Array(count);
  for (let i = 0, first = row * width; i < count; i++) codes[i] = (bits[first + (i >> 3)] >> (7 - (i & 7))) & 1;
  return codes;
}

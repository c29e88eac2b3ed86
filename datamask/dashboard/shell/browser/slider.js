// The lambda slider of a map. Solved selections travel once, with their numbers; dragging shows the nearest of them and
// asks nobody. Letting go asks the server once, through the ear, for the selection at just that lambda.

const RESTS = 200; // milliseconds without a key after which the keyboard has let go
const THUMB = 16; // CSS pixels, as in the style sheet: the middle of the thumb marks the value

class LambdaSlider {
  constructor(map, parent) {
    this.map = map;
    this.root = make("div", "lambda", parent);
    this.root.setAttribute("role", "group");
    this.root.setAttribute("aria-label", "Balance λ of the map");
    // words above, so that the slider keeps its place however many lines they take
    this.numbers = make("div", "numbers", this.root);
    const line = make("div", "line", this.root);
    this.name = make("output", "value", line);
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
    this.evidence = new EvidenceTrack(this);
    this.points = [];
    this.parcels = [];
    this.turn = 0;
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
    this.button.onclick = () => this.ask(this.state.press);
    this.home.onclick = () => {
      this.touched = false;
      this.at = this.state.home;
      this.ask("home");
      this.show();
      this.input.focus();
    };
  }

  // -- what the server says ---------------------------------------------------------------------------------------

  receive(state, solved, released, refined) {
    const parcels = [state, solved, released, refined];
    const changed = parcels.some((parcel, place) => parcel !== this.parcels[place]);
    Object.assign(this, { parcels, state, solved });
    this.root.hidden = !state;
    this.root.classList.toggle("dark", !!state?.dark);
    if (!state || !changed) {
      this.elsewhere(!!state && this.moved); // on panels that are new, too
      return;
    }
    this.points = [solved, released, refined].flatMap((parcel) =>
      (parcel?.points ?? []).map((point, place) => ({ ...point, parcel, place })));
    // an answer that arrives after the slider moved on does not move it back
    if (state.turn >= this.turn) Object.assign(this, { turn: state.turn, at: state.at, touched: state.touched });
    this.mark();
    this.show(false);
  }

  // -- what a hand does -------------------------------------------------------------------------------------------

  drag() {
    this.turn += 1;
    this.touched = true;
    this.at = Number(this.input.value);
    this.show();
  }

  release() {
    clearTimeout(this.waiting);
    // each arrow key is a change of its own; a pointer lets go once
    if (this.byKeys) this.waiting = setTimeout(() => this.ask(this.at), RESTS);
    else this.ask(this.at);
  }

  ask(question) {
    clearTimeout(this.waiting);
    this.waiting = 0;
    this.turn += 1;
    // in the place of what stood there, so that it is no step of Back; the server then writes the same letters
    if (question === "home") placeInAddress("lambda", "");
    if (typeof question === "number") placeInAddress("lambda", String(Number(question.toFixed(2))));
    STORE.bell.dispatchEvent(new CustomEvent("ask",
      { detail: { name: this.map.data.name, question: { wants: question, turn: this.turn } } }));
  }

  // -- what is shown ----------------------------------------------------------------------------------------------

  // The selection that stands for a lambda: its own, or the nearest one; of several at one lambda the latest made.
  get point() {
    let nearest = null;
    for (const point of this.points)
      if (!nearest || Math.abs(point.lamb - this.at) <= Math.abs(nearest.lamb - this.at) + 1e-9) nearest = point;
    return nearest;
  }

  // What a panel shows in the place of its own layer; null: its own.
  layer(panel) {
    const { state, point } = this;
    if (!state || !this.touched || !point || Number(panel.slot) !== state.panel) return null;
    if (state.between && !this.moved) return null;
    const { parcel, place } = point, id = `${parcel.id} ${place}`;
    if (this.drawn?.id === id) return this.drawn;
    const { marks, shapes, sizes, colors } = parcel;
    const whole = parcel.codes?.subarray(place * marks, (place + 1) * marks);
    this.drawn = { id, shapes, sizes, colors, codes: whole ?? unpacked(parcel.bits, place, marks),
      values: parcel.values?.subarray(place * marks, (place + 1) * marks),
      title: point.title, key: point.key, bar: point.bar, hover: point.value_words, text: "" };
    return this.drawn;
  }

  show(paint = true) {
    const { state, point, at, touched } = this;
    this.elsewhere(!!(touched && point && !(state.drawn !== null && Math.abs(point.lamb - state.drawn) < 1e-9)));
    this.input.value = String(at);
    this.input.disabled = this.points.length < 2 && !state.answers;
    this.name.textContent = `λ ${at.toFixed(2)}`;
    this.button.hidden = !state.press;
    this.button.textContent = this.button.title = state.label;
    this.home.hidden = !touched || this.input.disabled;
    this.home.textContent = this.home.title = state.back;
    this.numbers.replaceChildren();
    const say = (words, name = "") => words && make("span", name, this.numbers, words);
    if (point) {
      const near = Math.abs(point.lamb - at) < 5e-3 ? "" : `shown: λ ${point.lamb.toFixed(2)}`;
      for (const [name, words] of [["Quality", point.quality], ["Diversity", point.diversity], ["Joint", point.joint]]) {
        const entry = say(`${name} `, "number");
        if (entry) make("b", "", entry, words);
      }
      say(`${point.size} rows`);
      say(point.proof);
      if (point.overlap && !point.run) say(`keeps ${point.overlap} of ${state.run}`);
      if (point.run) say(`run ${state.run}`);
      say(near || point.note, "note");
      this.input.setAttribute("aria-valuetext", `λ ${at.toFixed(2)}: ${this.numbers.textContent}`);
    }
    say(state.words, "note");
    for (const { kind, words } of state.marks) {
      const entry = say(words, `mark ${kind}`);
      if (entry) entry.prepend(make("i", ""));
    }
    // read by tests: which selection is on the map
    this.root.dataset.shown = touched && point ? String(point.lamb) : "";
    if (paint) this.map.recolour();
  }

  // Whether the map draws another selection than the page around it. All that cannot follow at once is dimmed by style
  // sheets until it does: the map's own for what lies on it, the page's for what lies around it.
  elsewhere(moved) {
    this.map.root.classList.toggle("moved", moved);
    // another map on the page has no say in it
    if (moved || this.moved) document.documentElement.toggleAttribute("data-lambda-moved", moved);
    this.moved = moved;
    this.count(moved ? countsAt(STORE.slots.get(`${this.map.data?.name}/counts`), this.point?.lamb) : null);
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
    for (const { lamb } of this.solved?.points ?? []) place(lamb, lamb, "solved", `solved at λ ${lamb}`);
  }
}

// One packed row of bits, as bytes of 0 and 1.
function unpacked(bits, row, count) {
  const width = Math.ceil(count / 8), codes = new Uint8Array(count);
  for (let i = 0, first = row * width; i < count; i++) codes[i] = (bits[first + (i >> 3)] >> (7 - (i & 7))) & 1;
  return codes;
}

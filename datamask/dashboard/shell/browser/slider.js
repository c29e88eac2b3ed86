// The lambda slider of a map. Solved selections travel once, with their numbers; dragging shows the nearest of them and
// asks nobody. Letting go tells the server once, which draws the page with the selection at just that lambda.

const THUMB = 16; // CSS pixels, as in the style sheet: the middle of the thumb marks the value
const SOON = 1000; // milliseconds in which most selections are solved

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
    this.keep = new KeepSlider(this, this.root);
    this.points = [];
    this.turn = 0; // when a hand was last on it
    this.asked = 0; // when it was last let go
    this.rests = true; // whether the page has followed
    this.touched = false;
    this.moved = false;
    this.baseline = null; // 0: random rows, 1: the best scores are shown
    this.found = null; // the selection where it was let go, until the page has followed
    this.said = null; // what the answer bar says in place of the page's own selection
    this.pending = {}; // what was let go of since the page followed
    this.at = 0.5;
    held(this.input, () => this.drag(), () => this.ask(this.at));
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
    if (!state) return this.elsewhere(null);
    this.root.classList.toggle("dark", state.dark);
    const { current } = state;
    this.points = (solved?.points ?? []).map((point, place) => ({ ...point, place, parcel: solved }))
      .filter(({ lamb }) => lamb !== current?.lamb).concat(current ?? []).sort((a, b) => a.lamb - b.lamb);
    // what was drawn before the slider moved on does not move it back
    this.rests = !this.turn || state.heard === this.turn;
    if (this.rests) Object.assign(this, { at: state.at, touched: state.touched, pending: {} });
    const { found } = this;
    if (found?.of !== state.released || found.lamb !== this.at || found.lamb === current?.lamb) this.found = null;
    this.keep.receive(state.keep);
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
    this.touch();
    this.touched = true;
    this.at = Number(this.input.value);
    this.show();
  }

  // A hand is on one of the two sliders: until the page has followed, it does not move them.
  touch() {
    Object.assign(this, { turn: Date.now(), rests: false, baseline: null, found: null });
  }

  // A press on a baseline shows it in place of the selection; the next press shows the selection again.
  compare(baseline) {
    this.baseline = this.baseline === baseline ? null : baseline;
    this.show();
  }

  // The selection at a lambda, which is shown as soon as it is there; null: the one it began with. The server is told
  // after that, a second later, or before anything else is pressed: a page that is drawn meanwhile takes the processor
  // from what is solved.
  async ask(lamb) {
    const { state: { released } } = this;
    if (!released || lamb === null || this.point?.lamb === lamb) return this.send({ lamb });
    this.touch();
    Object.assign(this, { asked: this.turn, pending: { ...this.pending, lamb } });
    this.show();
    const { turn } = this;
    const shown = parcelAt(`${released}?at=${lamb}`).catch(() => null).then((parcel) => { // none: the page says why
      if (!parcel || this.turn !== turn || this.state?.released !== released || this.state.current?.lamb === lamb) return;
      this.found = { ...parcel.points[0], place: 0, parcel, of: released };
      this.show();
    });
    await Promise.race([shown, nextPress(this.input), new Promise((done) => setTimeout(done, SOON))]);
    if (this.turn === turn) this.tell(); // else whoever is on it now tells what was let go of
  }

  // Tell the server what was let go of, with what it may not have heard yet.
  send(part) {
    this.touch();
    this.asked = this.turn;
    Object.assign(this.pending, part);
    this.tell();
  }

  tell() {
    this.map.setStateValue("moved", { ...this.pending, turn: this.turn });
  }

  press() {
    this.map.setTriggerValue("pressed", this.state.press);
  }

  // -- what is shown ----------------------------------------------------------------------------------------------

  // The baselines, which travel behind the points; none while they are not known.
  get baselines() { return this.solved?.baselines ?? []; }

  // The page's own selection; under a hand the one that stands for a lambda: its own, or the nearest one. Or a baseline.
  get point() {
    const { baseline } = this;
    if (this.baselines[baseline])
      return { ...this.baselines[baseline], place: this.solved.points.length + baseline, parcel: this.solved };
    if (this.found) return this.found;
    if (this.rests) return this.state.current;
    let nearest = null;
    for (const point of this.points)
      if (!nearest || Math.abs(point.lamb - this.at) <= Math.abs(nearest.lamb - this.at) + 1e-9) nearest = point;
    return nearest;
  }

  // What a panel shows in the place of its own layer; null: its own.
  layer(panel) {
    if (Number(panel.slot) !== this.state?.panel) return null;
    const preview = this.keep.layer();
    panel.frame.classList.toggle("preview", !!preview);
    if (preview) return preview;
    if (!this.moved) return null;
    const { point } = this, { place, parcel: solved } = point, id = `${solved.id} ${place}`;
    if (this.drawn?.id === id) return this.drawn;
    const { marks, shapes, sizes, colors } = solved;
    const whole = solved.codes?.subarray(place * marks, (place + 1) * marks);
    this.drawn = { id, shapes, sizes, colors, codes: whole ?? unpacked(solved.bits, place, marks),
      values: solved.values?.subarray(place * marks, (place + 1) * marks),
      title: point.title, key: point.key, bar: point.bar, hover: point.hover, text: "" };
    return this.drawn;
  }

  show(paint = true) {
    const { state, point, at, touched } = this;
    this.follow();
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
    const solving = near && !this.rests && this.asked === this.turn;
    say(solving ? "solving" : this.found ? "" : state.words, "note");
    for (const { kind, words } of state.marks) {
      const entry = say(words, `mark ${kind}`);
      if (entry) entry.prepend(make("i", ""));
    }
    // read by tests: which selection is on the map
    this.root.dataset.shown = touched && point ? String(point.lamb) : "";
    STORE.slider = { points: this.points, point, at, movable: !this.input.disabled, drag: (lamb) => this.moveTo(lamb),
      release: () => this.ask(this.at), compare: this.baselines.length ? (k) => this.compare(k) : null, baseline: this.baseline };
    STORE.bell.dispatchEvent(new CustomEvent("slider"));
    if (paint) this.map.recolour();
  }

  // Have the answer bar say what is under the hand: the amount to keep, or the selection at a lambda.
  follow() {
    const { state, point } = this, kept = this.keep.answer;
    this.moved = !kept && !!point && point !== state.current;
    const other = this.moved ? { ...point, note: point.run ? `run ${state.run}` : point.note } : null;
    this.elsewhere(kept ?? other, this.moved ? countsAt(this.counted, point.lamb) : null);
  }

  // While the map draws another selection than the page around it, all that cannot follow at once is dimmed by style
  // sheets: the map's own for what lies on it, the page's for what lies around it. null: the page has followed.
  elsewhere(said, counts = null) {
    this.map.root.classList.toggle("moved", !!said);
    // another map on the page has no say in it
    if (said || this.said) {
      document.documentElement.toggleAttribute("data-lambda-moved", !!said);
      STORE.answer = said;
      STORE.bell.dispatchEvent(new CustomEvent("answer", { detail: said }));
    }
    this.said = said;
    this.count(counts);
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

// The next press of a key or button, but on the slider itself, whose release ends with a click.
function nextPress(slider) {
  const kinds = ["pointerdown", "click", "keydown"];
  return new Promise((done) => {
    const hear = (event) => {
      if (event.composedPath()[0] === slider) return;
      for (const kind of kinds) removeEventListener(kind, hear, true);
      done();
    };
    for (const kind of kinds) addEventListener(kind, hear, true);
  });
}

// One packed row of bits, as bytes of 0 and 1.
function unpacked(bits, row, count) {
  const width = Math.ceil(count / 8), codes = new Uint8Array(count);
  for (let i = 0, first = row * width; i < count; i++) codes[i] = (bits[first + (i >> 3)] >> (7 - (i & 7))) & 1;
  return codes;
}

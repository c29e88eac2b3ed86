// How much to keep, below the λ slider: one amount as a share, rows or tokens. While it is dragged the answer bar says
// how many rows and tokens that is, and asks nobody. Near the solved amount the map shows a preview, which is fetched when a
// hand comes near. Letting go tells the server once, which solves for that amount.

const UNITS = ["%", "rows", "tokens"];

class KeepSlider {
  constructor(slider, parent) {
    this.slider = slider;
    this.root = make("div", "line", parent);
    this.name = make("label", "value", this.root, "Keep ");
    this.typed = make("input", "", this.name);
    Object.assign(this.typed, { type: "text", inputMode: "decimal" });
    this.typed.onchange = () => this.ask(this.typed.value.trim(), this.unit);
    this.units = make("select", "", this.root);
    this.units.setAttribute("aria-label", "Unit of Keep");
    this.units.onchange = () => this.measure(this.units.value);
    this.input = make("input", "", make("div", "rail", this.root));
    Object.assign(this.input, { type: "range", min: "1", max: "99", step: "1" });
    this.input.setAttribute("aria-label", "Keep, in percent of all");
    this.unit = "%";
    this.dragged = false;
    this.preview = null;
    for (const near of ["pointerenter", "focusin"]) this.root.addEventListener(near, () => this.fetch());
    held(this.input, () => this.drag(), () => this.release());
  }

  receive(state) {
    this.state = state;
    this.root.hidden = !state;
    if (!state) return;
    const units = state.tokens ? UNITS : UNITS.slice(0, 2);
    if (this.units.length !== units.length)
      this.units.replaceChildren(...units.map((unit) => make("option", "", null, unit)));
    // until what was let go of is solved, its preview stays
    if (!this.slider.rests || (state.waits && this.dragged)) return;
    Object.assign(this, { at: state.share, dragged: false });
    // what is counted is a part of the view; whether rows are shown as their share is not
    if (state.unit === "tokens") this.unit = "tokens";
    else if (this.unit === "tokens") this.unit = "%";
    this.show();
  }

  async fetch() {
    const address = this.state?.preview;
    if (!address || this.preview?.id === address) return;
    try {
      const preview = await parcelAt(address);
      if (this.state?.preview === address) this.preview = preview;
      if (this.dragged) this.slider.show();
    } catch { /* not known yet: the next time */ }
  }

  // What the map would draw at the amount under the hand; null: nothing is known there.
  get shown() {
    const { preview } = this;
    if (!this.dragged || !preview || (preview.id !== this.state.preview && !this.state.waits)) return null;
    const place = preview.amounts.findIndex(({ share }) => Math.abs(share / 100 - this.at) < 1e-6);
    return place < 0 ? null : { ...preview.amounts[place], place };
  }

  // The preview in the place of a panel's layer; null: the panel's own.
  layer() {
    const { preview, shown } = this;
    if (!shown) return null;
    const { marks, shapes, sizes, colors } = preview, { place, title, key, bar, hover } = shown;
    return { id: `${preview.id} ${place}`, shapes, sizes, colors, title, key, bar, hover, text: "",
      codes: preview.codes.subarray(place * marks, (place + 1) * marks) };
  }

  drag() {
    this.slider.touch();
    Object.assign(this, { at: Number(this.input.value) / 100, dragged: true });
    this.show();
    this.slider.show();
  }

  release() {
    const tokens = this.unit === "tokens";
    this.ask(tokens ? this.tokens : this.input.value, tokens ? "tokens" : "%");
  }

  // The same amount in another unit; of tokens it is another question.
  measure(unit) {
    const before = this.unit;
    this.unit = unit;
    if (unit === "tokens") this.ask(this.tokens, unit);
    else if (before === "tokens") this.ask(Math.round(1000 * this.at) / 10, "%");
    this.show();
  }

  ask(amount, unit) {
    this.slider.send({ keep: { amount: String(amount), unit } });
  }

  get rows() { return Math.round(this.at * this.state.rows); }
  // in few digits, as somebody would type them
  get tokens() { return Number((this.at * this.state.tokens).toPrecision(3)); }

  // What the answer bar says while the amount is under a hand; null: what it says without.
  get answer() {
    if (!this.state || !this.dragged) return null;
    const { state, shown } = this, byTokens = this.unit === "tokens";
    const rows = byTokens ? this.tokens / state.mean : this.rows, tokens = byTokens ? this.tokens : rows * state.mean;
    const about = (exact) => (exact ? "" : "about\u00a0");
    const [counted, summed] = shown ? [many(shown.rows), shown.tokens] :
      [about(!byTokens) + many(Math.round(rows)), state.tokens && about(byTokens) + short(tokens)];
    const size = `${counted} of ${many(state.rows)} rows${summed ? ` · ${summed} tokens` : ""}`;
    return { turn: this.slider.turn, name: this.words, problem: "", note: "preview", size, meters: [], proof: "", gap: "",
      sentence: "" };
  }

  get number() {
    if (this.unit === "tokens") return this.dragged ? short(this.tokens) : this.state.budget;
    return this.unit === "rows" ? many(this.rows) : String(Number((100 * this.at).toPrecision(4)));
  }

  get words() { return `Keep ${this.number} ${this.unit}`; }

  show() {
    this.input.value = String(100 * this.at);
    this.units.value = this.unit;
    this.typed.value = this.number;
    this.input.setAttribute("aria-valuetext", this.words);
  }
}

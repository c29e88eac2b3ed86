// What an ablation found, on the lambda slider: a mark under the track for each tried lambda and nothing between them, told
// apart by shape too; below them a key, the reason behind "?", what the result says, and a button that moves the slider.

const VERDICTS = { better: "M5 1 9.5 9H.5z", level: "M1 4h8v2H1z", worse: "M5 9 .5 1h9z" };

class EvidenceTrack {
  constructor(slider) {
    this.slider = slider;
    this.lane = make("div", "lane", slider.rail);
    this.lane.setAttribute("role", "img");
    this.root = make("div", "evidence", slider.root);
    this.key = make("span", "key-of-track", this.root);
    this.why = make("button", "why", this.root, "?");
    this.why.setAttribute("aria-label", "What the colors of the slider mean");
    this.why.setAttribute("aria-expanded", "false");
    this.why.onclick = () => this.explain(this.reason.hidden);
    this.reason = make("span", "note reason", this.root);
    this.said = make("span", "said", this.root);
    this.use = make("button", "use", this.root);
    for (const button of [this.why, this.use]) button.type = "button";
    this.use.onclick = () => this.move();
  }

  receive(found) {
    const { input, state: stands } = this.slider;
    if (this.wanted !== undefined && !input.disabled) this.go(this.wanted);
    this.use.disabled = input.disabled && !stands?.press; // nothing to move to, and nothing under way
    if (JSON.stringify(found) === JSON.stringify(this.found)) return;
    this.found = found;
    const { state, points, key, sentences, reason, offer } = found;
    this.slider.root.classList.toggle("tried", points.length > 0);
    this.root.hidden = found.silent;
    this.lane.hidden = points.length === 0;
    this.lane.className = `lane ${state}`;
    this.root.dataset.state = state; // read by tests
    this.lane.replaceChildren();
    for (const { lamb, verdict, words } of points) {
      const mark = make("span", verdict, this.lane);
      mark.style.left = `calc(${THUMB / 2}px + (100% - ${THUMB}px) * ${lamb})`;
      mark.innerHTML = glyph(verdict);
      mark.title = words;
      mark.dataset.lamb = lamb;
      mark.classList.toggle("offered", lamb === offer);
    }
    this.lane.setAttribute("aria-label", points.map(({ words }) => words).join("; "));
    this.key.className = `key-of-track ${state}`;
    this.key.replaceChildren();
    if (key.length) make("span", "of", this.key, "Solved selections:");
    for (const [verdict, name] of key) {
      const entry = make("span", `entry ${verdict}`, this.key);
      entry.innerHTML = glyph(verdict);
      make("span", "", entry, name);
    }
    this.reason.textContent = this.why.title = reason;
    this.explain(false);
    this.said.textContent = sentences.join(" ");
    this.use.hidden = offer === null;
    this.use.textContent = `Use λ ${offer}`;
  }

  explain(open) {
    this.reason.hidden = !open;
    this.why.setAttribute("aria-expanded", String(open));
  }

  // A recommendation is an offer, and this is the press that takes it.
  move() {
    const { slider, found } = this;
    if (!slider.input.disabled) return this.go(found.offer);
    this.wanted = found.offer; // there are no selections to move to yet
    if (slider.state.press === "prepare") slider.press();
  }

  // As a hand would.
  go(lamb) {
    this.wanted = undefined;
    Object.assign(this.slider, { touched: true, at: lamb });
    this.slider.ask(lamb);
    this.slider.show();
  }
}

function glyph(verdict) {
  return `<svg viewBox="0 0 10 10" aria-hidden="true"><path d="${VERDICTS[verdict]}"/></svg>`;
}

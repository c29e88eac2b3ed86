// The answer bar: how large and how good the current selection is. While λ is dragged it shows the solved selection that
// the map draws, and names its λ; while Keep is, how many rows and tokens that is. The map's sliders tell it by the bell.

const BARS = new WeakMap();
const LOW = -0.15; // where a meter begins: below 0, which is random
const ROOM = 1 - LOW, ROOMY = 0.6; // from the last on, words of the best scores stand apart from those of random
const MOVED = "datamask-lambda-moved";

class AnswerBar {
  constructor(parent) {
    this.root = make("div", "answer", parent);
    this.met = remembered(); // the welcome stays where λ is moved, so that nothing moves under the hand
    this.welcome = make("div", "head welcome", this.root);
    const head = make("div", "head", this.root);
    [this.name, this.about] = [make("b", "", head), make("span", "", head)];
    this.size = make("div", "size", this.root);
    this.meters = make("div", "meters", this.root);
    this.proof = make("div", "proof", this.root);
    this.sentence = make("div", "sentence", this.root);
    this.hear = ({ detail }) => {
      if (!this.root.isConnected) STORE.bell.removeEventListener("answer", this.hear);
      else this.show(detail);
      if (detail) remember();
    };
    STORE.bell.addEventListener("answer", this.hear);
  }

  receive(data) {
    this.data = data;
    this.welcome.textContent = data.welcome;
    this.welcome.hidden = !data.welcome || this.met;
    this.show(STORE.answer);
  }

  // What is under the hand on the slider; null: the current selection. An amount that the page has solved is no longer
  // under a hand, though the map is not drawn with it yet.
  show(told) {
    const { answer, heard, problem, ticks, colors } = this.data, moved = answer && heard === told?.turn ? null : told;
    const said = moved ?? answer;
    this.root.hidden = !said; // while the first selection of a problem is solved
    if (!said) return;
    this.name.textContent = said.name;
    this.about.textContent = [said.problem ?? problem, said.note].filter(Boolean).join(" · ");
    this.root.title = this.about.textContent;
    this.size.textContent = said.size;
    this.meters.replaceChildren();
    said.meters.forEach((meter, k) => meter.share === null || this.meter(meter, ticks[k] ?? [], colors[k]));
    this.proof.textContent = said.proof;
    this.proof.title = said.gap;
    this.sentence.textContent = said.sentence;
    this.root.classList.toggle("moved", !!moved); // read by tests
  }

  // It says what the ticks are, where there is room for the words, and else what the end is.
  meter({ term, share, words, finer }, ticks, color) {
    const root = make("div", "meter", this.meters), label = make("div", "label", root, `${term} `);
    make("b", "", label, words);
    const beside = ticks.map((tick) => tick.words).join(", ");
    root.title = `${term} ${finer}, from random (0 %) to the best possible (100 %). ${beside}`;
    const track = make("div", "track", root), place = (at) => `${(100 * (Math.min(1, Math.max(LOW, at)) - LOW)) / ROOM}%`;
    const fill = make("i", share < 0 ? "fill below" : "fill", track);
    [fill.style.left, fill.style.right] = [place(Math.min(0, share)), `calc(100% - ${place(Math.max(0, share))})`];
    if (share >= 0) fill.style.background = color;
    // what lies far below random has no place here: the sentence below says it
    ticks.forEach(({ share, words }, k) => {
      if (share < LOW) return;
      const tick = make("i", `${k ? "best" : "random"} tick`, track), roomy = !k || share > ROOMY;
      tick.title = words;
      for (const part of [tick, make("small", "", track, roomy ? ["random", "best scores"][k] : "")]) part.style.left = place(share);
    });
    if (ticks.length && !(ticks.at(-1).share > ROOMY)) make("small", "end", track, "most");
  }
}

// Whether λ was moved in this browser before: then nothing needs to be explained.
function remembered() {
  try { return localStorage.getItem(MOVED) !== null; } catch { return false; } // where a browser keeps nothing
}

function remember() {
  try { localStorage.setItem(MOVED, "1"); } catch { /* as above */ }
}

function mount({ data, parentElement }) {
  if (!data) return;
  let bar = BARS.get(parentElement);
  if (!bar) BARS.set(parentElement, (bar = new AnswerBar(parentElement)));
  bar.receive(data);
}

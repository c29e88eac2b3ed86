// What the components of a tab share, each being a module of its own: parcels that were fetched, and what a map's slider
// shows while λ is dragged, its counts and its answer, which a bell tells to bars that follow them. `slider` is the slider as
// the trade-off sees it, which moves it too.

const STORE = (globalThis[Symbol.for("datamask.map")] ??=
  { parcels: new Map(), counts: null, answer: null, slider: null, bell: new EventTarget() });

// What the components of a tab share, each being a module of its own: parcels that were fetched, and the counts of a
// map's slider, which a bell tells to bars that follow them.

const STORE = (globalThis[Symbol.for("datamask.map")] ??=
  { parcels: new Map(), counts: null, bell: new EventTarget() });

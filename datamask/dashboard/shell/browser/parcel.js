// Parcels from the server, as datamask/dashboard/map/parcels.py packs them, and the place where they wait for their map.
// Carriers and maps are separate components with separate modules: they meet in one store per browser tab.

const STORE = (globalThis[Symbol.for("datamask.map")] ??=
  { slots: new Map(), views: new Map(), bell: new EventTarget() });

const KINDS = { uint8: Uint8Array, uint32: Uint32Array, float32: Float32Array };

// One addressed parcel: a byte for the address's length, the address, the parcel.
function readParcel(bytes) {
  const start = 1 + bytes[0];
  const slot = new TextDecoder().decode(bytes.subarray(1, start));
  const length = new DataView(bytes.buffer, bytes.byteOffset + start, 4).getUint32(0, true);
  const parcel = JSON.parse(new TextDecoder().decode(bytes.subarray(start + 4, start + 4 + length)));
  const room = start + Math.ceil((4 + length) / 8) * 8;
  for (const [name, [kind, place, size]] of Object.entries(parcel.arrays)) {
    const first = room + place;
    // a copy of its own, because a typed array must begin at a multiple of its element's size
    parcel[name] = new KINDS[kind](bytes.slice(first, first + size * KINDS[kind].BYTES_PER_ELEMENT).buffer);
  }
  return { slot, parcel };
}

function publish(slot, parcel) {
  STORE.slots.set(slot, parcel);
  ring(slot);
}

function ring(slot) {
  STORE.bell.dispatchEvent(new CustomEvent("parcel", { detail: slot }));
}

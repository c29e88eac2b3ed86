// Parcels of the server, as datamask/dashboard/map/parcels.py packs them: each is fetched once, by its address.

const HELD = 24; // parcels that a tab holds, those used last; the browser's own cache has the others

const KINDS = { uint8: Uint8Array, uint32: Uint32Array, float32: Float32Array };

// A promise of a parcel.
function parcelAt(address) {
  const { parcels } = STORE, parcel = parcels.get(address) ?? fetchParcel(address);
  parcels.delete(address);
  parcels.set(address, parcel);
  for (const old of [...parcels.keys()].slice(0, -HELD)) parcels.delete(old);
  parcel.catch(() => parcels.delete(address));
  return parcel;
}

async function fetchParcel(address) {
  const answer = await fetch(new URL(`datamask/parcel/${address}`, document.baseURI));
  if (!answer.ok) throw Object.assign(new Error(`parcel: ${answer.status}`), { gone: answer.status === 404 && address });
  const buffer = await answer.arrayBuffer(), length = new DataView(buffer).getUint32(0, true);
  const parcel = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const room = Math.ceil((4 + length) / 8) * 8;
  for (const [name, [kind, place, size]] of Object.entries(parcel.arrays))
    parcel[name] = new KINDS[kind](buffer, room + place, size);
  return Object.assign(parcel, { id: address });
}

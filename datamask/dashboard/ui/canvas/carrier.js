// Carries one parcel to the store and shows nothing. The server sends it again only when it changed.

const CARRIED = new WeakMap();

export default function ({ data, parentElement }) {
  if (!data) return;
  const { slot, parcel } = readParcel(data);
  const known = STORE.slots.get(slot);
  CARRIED.set(parentElement, { slot, id: parcel.id });
  if (known?.id !== parcel.id) publish(slot, parcel);
  return () => {
    // another carrier may have taken over the slot before this one went
    const mine = CARRIED.get(parentElement);
    if (mine && STORE.slots.get(mine.slot)?.id === mine.id) STORE.slots.delete(mine.slot);
  };
}

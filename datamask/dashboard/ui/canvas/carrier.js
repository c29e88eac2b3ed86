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
    if (!mine || STORE.slots.get(mine.slot)?.id !== mine.id) return;
    STORE.slots.delete(mine.slot);
    // who shows it must learn that it is gone: another run's slider must not keep the answers of the last one
    ring(mine.slot);
  };
}

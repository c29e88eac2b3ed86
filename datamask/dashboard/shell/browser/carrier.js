// Carries one parcel to the store and shows nothing. The server sends it again only when it changed.

STORE.carriers ??= new Map(); // by slot the element that carried to it last
const CARRIED = new WeakMap();

function mount({ data, parentElement }) {
  if (!data) return;
  const { slot, parcel } = readParcel(data);
  const known = STORE.slots.get(slot);
  CARRIED.set(parentElement, slot);
  STORE.carriers.set(slot, parentElement);
  if (known?.id !== parcel.id) publish(slot, parcel);
  return lasting(parentElement, () => {
    const mine = CARRIED.get(parentElement);
    // another carrier may have taken over the slot before this one went, with the same parcel too
    if (STORE.carriers.get(mine) !== parentElement) return;
    STORE.carriers.delete(mine);
    STORE.slots.delete(mine);
    // who shows it must learn that it is gone: another run's slider must not keep the answers of the last one
    ring(mine);
  });
}

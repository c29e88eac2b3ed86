// What the server counted at each solved λ, for what stands on the map and around it: looked up while λ is dragged.

// The counts at a λ, or null where none were sent for it.
function countsAt(parcel, lamb) {
  const place = parcel ? parcel.lambdas.findLastIndex((counted) => Math.abs(counted - lamb) < 1e-9) : -1;
  if (place < 0) return null;
  const { tallies, sizes, kept, verdicts, names, shares } = parcel, line = place * sizes.length;
  const starts = new Map();
  let start = 0;
  for (const [name, size] of tallies) { starts.set(name, start); start += size; }
  return {
    share: shares[place],
    has: (name) => starts.has(name),
    n: (name, code) => sizes[starts.get(name) + code],
    kept: (name, code) => kept[line + starts.get(name) + code],
    verdict: (name, code) => names[verdicts[line + starts.get(name) + code]],
  };
}

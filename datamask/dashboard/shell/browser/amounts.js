// Amounts in words, as dashboard/drawing/words.py writes them: the same number reads the same wherever it was counted.

const many = (n) => n.toLocaleString("en-US");

// A large count in few digits: 1.2 M.
function short(number) {
  for (const [unit, factor] of [["T", 1e12], ["B", 1e9], ["M", 1e6], ["k", 1e3]]) {
    const scaled = number / factor;
    if (scaled >= 1) return `${scaled < 999.5 ? Number(scaled.toPrecision(3)) : many(Math.round(scaled))}\u00a0${unit}`;
  }
  return many(Math.round(number));
}

function percent(share) {
  const exact = 100 * share;
  // a half goes to the even number, as in Python
  const whole = Math.abs(exact % 1) === 0.5 ? 2 * Math.round(exact / 2) : Math.round(exact);
  return `${String(whole).replace("-", "−")}\u00a0%`;
}

// Amounts in words, as dashboard/drawing/words.py writes them: the same share reads the same wherever it was counted.

const many = (n) => n.toLocaleString("en-US");

function percent(share) {
  const exact = 100 * share;
  // a half goes to the even number, as in Python
  const whole = Math.abs(exact % 1) === 0.5 ? 2 * Math.round(exact / 2) : Math.round(exact);
  return `${String(whole).replace("-", "−")}\u00a0%`;
}

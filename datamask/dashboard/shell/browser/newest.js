// The last part of every component: `mount`, defined before it, is called with the data that the server sent last.
//
// Where new data comes while the component's module is imported, Streamlit 1.67 gives the earlier call up, which runs all
// the same, now and then after the later one. So data are numbered, and an element does not go back to earlier ones.
// Numbers are seconds of the server's clock: what lies farther back comes from another server, or its clock was set.

const FARTHER = 60;
const NUMBERS = new WeakMap(); // by element

function opened(data) {
  if (data instanceof Uint8Array) {
    const number = new DataView(data.buffer, data.byteOffset, 8).getFloat64(0, true);
    return [number, data.subarray(8)];
  }
  const { number, ...rest } = data;
  return [number, rest];
}

export default function (call) {
  if (!call.data) return mount(call);
  const [number, data] = opened(call.data);
  const before = NUMBERS.get(call.parentElement);
  if (number < before && number > before - FARTHER) return;
  NUMBERS.set(call.parentElement, number);
  return mount({ ...call, data });
}

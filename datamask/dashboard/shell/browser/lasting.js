// Streamlit imports a component's module anew for every call. Where new data comes before that has ended it gives the
// earlier call up: both still run, in one element, and then it cleans up after the earlier one. What stands there by
// then is the later call's, so only the last call of an element may take anything away.

const CALLS = new WeakMap(); // by element how often its component was called

// What a component returns: `leave`, unless its element was called again since.
function lasting(parentElement, leave) {
  const call = (CALLS.get(parentElement) ?? 0) + 1;
  CALLS.set(parentElement, call);
  return () => {
    if (CALLS.get(parentElement) === call) leave();
  };
}

// Streamlit imports a component's module anew for every call. Where new data comes before that has ended it gives the
// earlier call up: that still runs, in the same element, and is cleaned up after at once, while the next call is under
// way. What stands in the element is for that one. So nothing is taken away as long as the element is on the page.

// What a component returns: `leave`, once its element has left the page.
function lasting(parentElement, leave) {
  return () => {
    if (!parentElement.isConnected) leave();
  };
}

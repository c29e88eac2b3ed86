// A range input under a hand: it says when it is dragged, and once when it is let go.

const RESTS = 200; // milliseconds without a key after which the keyboard has let go

function held(input, drag, release) {
  let byKeys = false, waiting = 0;
  const done = () => {
    clearTimeout(waiting);
    waiting = 0;
    release();
  };
  input.oninput = drag;
  input.onpointerdown = () => { byKeys = false; };
  input.onkeydown = () => { byKeys = true; };
  input.onblur = () => waiting && done(); // before whatever is pressed next
  input.onchange = () => {
    clearTimeout(waiting);
    // each arrow key is a change of its own; a pointer lets go once
    if (byKeys) waiting = setTimeout(done, RESTS);
    else done();
  };
}

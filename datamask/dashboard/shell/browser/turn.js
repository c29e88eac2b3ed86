// To the sample before or after the one that is read, by the reader's own buttons; nothing where there is none.

function turnTo(which) {
  const button = document.querySelector(`.st-key-sample_${which} button`);
  if (button && !button.disabled) button.click();
  return !!button;
}

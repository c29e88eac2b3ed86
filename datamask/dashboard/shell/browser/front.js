// On a phone maps that stand side by side elsewhere are shown one at a time: which one is in front, and two buttons.

const ONE_AT_A_TIME = 520; // pixels of all maps together, below which one of several says nothing

class Front {
  constructor(map) {
    this.map = map;
    this.place = 0;
    this.root = make("div", "front", map.root);
    this.root.hidden = true;
    this.turn("Previous map", "‹", -1);
    this.said = make("span", "", this.root);
    this.said.setAttribute("aria-live", "polite");
    this.turn("Next map", "›", 1);
  }

  turn(label, sign, step) {
    const button = make("button", "", this.root, sign);
    button.type = "button";
    button.setAttribute("aria-label", label);
    button.onclick = () => {
      const n = this.map.panels.length;
      this.place = (this.place + step + n) % n;
      this.show();
    };
  }

  arrange(single) {
    this.root.hidden = !single;
    this.map.grid.classList.toggle("single", single);
    this.place = Math.min(this.place, this.map.panels.length - 1);
    this.show();
  }

  show() {
    const { panels } = this.map;
    // the others keep their place and size behind it: they follow its zoom, and need not be drawn anew
    panels.forEach(({ frame }, k) => frame.classList.toggle("behind", !this.root.hidden && k !== this.place));
    this.said.textContent = `Map ${this.place + 1} of ${panels.length}`;
  }
}

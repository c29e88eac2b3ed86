// What pointer and keyboard do on a panel of a map.

function listen(map, panel) {
  const { stage } = panel;
  const place = (event) => {
    const box = stage.getBoundingClientRect();
    const x = event.clientX - box.left - stage.clientLeft, y = event.clientY - box.top - stage.clientTop;
    const ratio = map.width / stage.clientWidth; // a small one shows the picture of a large one
    return [x * ratio, y * ratio];
  };
  let start = null, last = null, far = 0, name = null;
  stage.onpointerdown = (event) => {
    if (event.button > 1 || !map.view) return;
    start = last = place(event);
    name = event.target.closest(".name")?.region;
    far = 0;
    stage.setPointerCapture(event.pointerId);
    stage.panning = map.tool === "pan" || event.button === 1;
    stage.classList.toggle("busy", stage.panning);
    point(map, -1);
    if (!stage.panning)
      map.drawing = { kind: map.tool, xs: [map.fromX(start[0])], ys: [map.fromY(start[1])] };
  };
  stage.onpointermove = (event) => {
    const [x, y] = place(event);
    if (!start) return point(map, event.target.closest(".name") ? -1 : nearest(map, x, y), event);
    far = Math.max(far, Math.hypot(x - start[0], y - start[1]));
    if (stage.panning) map.pan(x - last[0], y - last[1]);
    else if (map.tool === "box") {
      const [[a, b], [c, d]] = [[start[0], x].map((v) => map.fromX(v)), [start[1], y].map((v) => map.fromY(v))];
      Object.assign(map.drawing, { xs: [a, b, b, a], ys: [c, c, d, d] });
    } else if (Math.hypot(x - last[0], y - last[1]) >= 2) {
      map.drawing.xs.push(map.fromX(x));
      map.drawing.ys.push(map.fromY(y));
    } else return;
    last = [x, y];
    map.outline();
  };
  stage.onpointerup = (event) => {
    if (!start) return;
    const drawing = map.drawing, click = far < 4;
    start = map.drawing = null;
    stage.classList.remove("busy");
    if (!click && drawing?.xs.length > 2) map.settle(event.shiftKey ? [...map.regions, drawing] : [drawing]);
    else {
      map.outline();
      if (click && name) map.open(name.code);
      else if (click) map.mark(nearest(map, ...place(event)));
    }
  };
  stage.onpointercancel = () => { start = map.drawing = null; map.outline(); };
  stage.onpointerleave = () => point(map, -1);
  stage.onwheel = (event) => {
    event.preventDefault();
    map.zoom(1.0018 ** -event.deltaY, ...place(event));
  };
  stage.onkeydown = (event) => pressed(map, event);
}

function pressed(map, event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !map.view) return;
  const step = 40;
  const keys = {
    ArrowLeft: () => map.pan(step, 0), ArrowRight: () => map.pan(-step, 0), ArrowUp: () => map.pan(0, step),
    ArrowDown: () => map.pan(0, -step), "+": () => map.zoom(1.3), "=": () => map.zoom(1.3),
    "-": () => map.zoom(1 / 1.3), 0: () => map.home(), l: () => map.take("lasso"), b: () => map.take("box"),
    p: () => map.take("pan"), f: () => map.fill(!map.full),
    Escape: () => (map.full ? map.fill(false) : map.regions.length && map.settle([])),
    ",": () => turnTo("previous"), ".": () => turnTo("next"),
    m: () => map.mark(nearest(map, map.width / 2, map.middle, Infinity)),
    Enter: () => {
      const [a, b, c, d] = [map.fromX(0), map.fromX(map.width), map.fromY(map.height), map.fromY(0)];
      map.settle([{ kind: "box", xs: [a, b, b, a], ys: [c, c, d, d] }]);
    },
  };
  const run = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!run) return;
  event.preventDefault();
  event.stopPropagation();
  run();
}

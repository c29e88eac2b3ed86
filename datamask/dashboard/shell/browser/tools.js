// What the map's buttons, keys and glyphs are called and look like, and how a number is said.

const TOOLS = [
  ["lasso", "Lasso: draw around rows (L)",
    "M4 9c0-3 3.5-5 8-5s8 2 8 5-3.5 5-8 5-8-2-8-5zM7 13c-2 1-2.5 4 .5 4s2.5 3.5 0 4"],
  ["box", "Box: drag a rectangle over rows (B)", "M4 4h16v16H4z"],
  ["pan", "Move the map by dragging (P)",
    "M12 3v18M3 12h18M12 3l-3 3M12 3l3 3M12 21l-3-3M12 21l3-3M3 12l3-3M3 12l3 3M21 12l-3-3M21 12l-3 3"],
];
const ACTIONS = [
  ["in", "Zoom in (+)", "M12 5v14M5 12h14"],
  ["out", "Zoom out (-)", "M5 12h14"],
  ["home", "Show the whole map (0)", "M4 11l8-7 8 7M6 10v10h12V10"],
  ["full", "Full screen (F)", "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5"],
  ["clear", "Remove the region (Escape)", "M6 6l12 12M18 6L6 18"],
];
const HELP = "Keys: arrows move the map, plus and minus zoom, 0 shows all of it, L, B and P choose lasso, box or " +
  "moving, Enter makes a region of the view, Escape removes the region, M marks the row nearest to the " +
  "center, comma and full stop go to the previous and next row of the list, F fills the window. Tab " +
  "reaches the named regions, arrows go to the next, Enter filters by it.";
const GAP = 10; // CSS pixels between panels, as in the style sheet
const CLEAR = 64; // CSS pixels that title and key cover
const NEAR = 12; // CSS pixels between the pointer and the sample it points at
const GLYPHS = { circle: "<circle cx='5' cy='5' r='4.2'/>", triangle: "<path d='M5 .5L9.5 9H.5z'/>",
  diamond: "<path d='M5 0l5 5-5 5-5-5z'/>", square: "<path d='M1 1h8v8H1z'/>",
  cross: "<path d='M2 0L5 3 8 0l2 2-3 3 3 3-2 2-3-3-3 3-2-2 3-3-3-3z'/>" };

function said(value, format) {
  if (format === "percent") return percent(value);
  if (format === "count") return many(Math.round(value));
  if (format === "signed") return (value > 0 ? "+" : "") + many(Math.round(value));
  return value.toLocaleString("en-US", { maximumSignificantDigits: 4 });
}

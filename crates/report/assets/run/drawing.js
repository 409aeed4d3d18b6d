// Drawings as SVG. Places are in percent, so that marks keep their shape at any width.

const MIDDLE = 50;
// Shapes tell series apart without colours.
const CIRCLE = "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z";
const DIAMOND = "M-5 0L0-5L5 0L0 5Z";
const SQUARE = "M-4-4H4V4H-4Z";
const TRIANGLE = "M-5 4L0-5L5 4Z";
const CROSS = "M-4-4L4 4M-4 4L4-4";
const PLUS = "M-5 0H5M0-5V5";

const percent = (share) => `${share.toFixed(2)}%`;

function drawn(tag, attributes, ...inside) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...inside);
  return made;
}

// A line between two places.
function segment(className, [x1, y1], [x2, y2]) {
  return drawn("line", { class: className, x1: percent(x1), y1: percent(y1), x2: percent(x2), y2: percent(y2) });
}

function upright(className, x) {
  return segment(className, [x, 0], [x, 100]);
}

// A line between two values, in the middle of the height; nothing if one of them has no place.
function stroke(axis, className, low, high) {
  const [from, to] = [axis.place(low), axis.place(high)];
  return from === null || to === null ? [] : [segment(className, [from, MIDDLE], [to, MIDDLE])];
}

// A mark with a text that a pointer shows; nothing without a place.
function mark(shape, className, [x, y], hint) {
  if (x === null || y === null) return [];
  const path = drawn("path", { class: `mark ${className}`, d: shape }, drawn("title", {}, hint));
  return [drawn("svg", { x: percent(x), y: percent(y), overflow: "visible" }, path)];
}

// A mark with its meaning.
function key(shape, className, meaning) {
  const path = drawn("path", { class: `mark ${className}`, d: shape });
  const picture = drawn("svg", { "aria-hidden": "true", width: 14, height: 14, viewBox: "-7 -7 14 14" }, path);
  return [element("span", { className: "key" }, picture, meaning), " "];
}

function tickLabels({ ticks }, format) {
  const texts = ticks.map(([x, tick]) => drawn("text", { x: percent(x), y: "1em" }, axisLabel(format, tick)));
  return drawn("svg", { class: "labels", "aria-hidden": "true" }, ...texts);
}

// A figure of rows on one axis, each with a name, a track of marks and numbers; null without rows.
function figure({ title, caption, keys = [], label, format, ground = () => [] }, axis, rows) {
  if (rows.length === 0) return null;
  const lines = rows.map(([name, track, value]) => {
    const grid = axis.ticks.map(([x]) => upright("grid", x));
    const picture = drawn("svg", { "aria-hidden": "true" }, ...grid, ...ground(), ...track);
    return element(
      "div",
      { className: "line" },
      element("span", { className: "name" }, ...name),
      element("div", { className: "track" }, picture),
      element("span", { className: "value" }, ...value),
    );
  });
  const scale = element(
    "div",
    { className: "line axis" },
    element("span", { className: "name", text: axis.isLog ? `${label} (logarithmic)` : label }),
    element("div", { className: "track" }, tickLabels(axis, format)),
    element("span", { className: "value" }),
  );
  return element("figure", {}, ...heading(title, caption, keys), element("div", { className: "lines" }, ...lines, scale));
}

function heading(title, caption, keys) {
  return [element("h3", { text: title }), element("figcaption", {}, caption, element("span", { className: "keys" }, ...keys))];
}

// The figure of throughput against operations in flight, for arms of one model that differ in threads
// or depth only.

const SHAPES = [CIRCLE, SQUARE, DIAMOND, TRIANGLE, PLUS];
// The colours in the style. Five shapes times seven colours tell 35 series apart.
const COLOURS = 7;
const IN_FLIGHT = "Throughput against operations in flight";

// The languages and models of the run. The place of one is its colour, on the whole page.
const PALETTE = [...new Set(RUN.arms.map(modelOf))].sort();

function modelOf({ lang, model }) {
  return `${lang}\n${model}`;
}

function flightFigure(cell) {
  const hasBytes = cell.counted.some(({ arm }) => arm.bytes_per_s > 0);
  const [field, format] = hasBytes ? ["bytes_per_s", BYTES_PER_S] : ["ops_per_s", OPS_PER_S];
  const found = seriesOf(cell, field);
  const points = found.flatMap((series) => series.points);
  // Arms that differ in nothing but their names stand above each other.
  if (!found.some((series) => new Set(series.points.map(([inFlight]) => inFlight)).size > 1)) return null;
  const [x, y] = [logAxisOver(points.map(([inFlight]) => inFlight)), axisOver(points.map(([, rate]) => rate))];
  if (!x || !y) return null;
  const keys = found.flatMap(({ name, colour }, at) => key(SHAPES[at % SHAPES.length], colour, name));
  const log = y.isLog ? "both axes are logarithmic" : "the horizontal axis is logarithmic";
  const grid = [...x.ticks.map(([at]) => upright("grid", at)), ...y.ticks.map(([at]) => segment("grid", [0, 100 - at], [100, 100 - at]))];
  const described = { role: "img", "aria-label": `${IN_FLIGHT}; the table below has the numbers` };
  const labels = y.ticks.map(([at, tick]) => drawn("text", { x: "100%", y: percent(100 - at), dy: "0.35em" }, axisLabel(format, tick)));
  const chart = element(
    "div",
    { className: "chart" },
    element("div", { className: "side" }, drawn("svg", { "aria-hidden": "true" }, ...labels)),
    element("div", { className: "plot" }, drawn("svg", described, ...grid, ...found.flatMap((series, at) => curve(series, at, x, y)))),
    tickLabels(x, PLAIN),
    element("p", { className: "label", text: "operations in flight" }),
  );
  return element("figure", {}, ...heading(IN_FLIGHT, `Threads times depth; ${log}. Methods of one model are joined.`, keys), chart);
}

// A series for each model, or for each of its depths if both threads and depth differ.
function seriesOf(cell, field) {
  const arms = cell.counted.map(({ arm }) => arm);
  const isPolyglot = arms.some(({ lang }) => lang !== arms[0].lang);
  const byRate = (arms) => arms.map((arm) => [arm.threads * arm.depth, arm[field]]).sort(([a], [b]) => a - b);
  return [...new Set(arms.map(modelOf))].flatMap((model) => {
    const own = arms.filter((arm) => modelOf(arm) === model);
    const colour = `s${PALETTE.indexOf(model) % COLOURS}`;
    const name = isPolyglot ? `${own[0].lang} ${own[0].model}` : own[0].model;
    const depths = [...new Set(own.map(({ depth }) => depth))].sort((a, b) => a - b);
    if (depths.length < 2 || new Set(own.map(({ threads }) => threads)).size < 2) return [{ colour, name, points: byRate(own) }];
    return depths.map((depth) => ({ colour, name: `${name}, depth ${depth}`, points: byRate(own.filter((arm) => arm.depth === depth)) }));
  });
}

function curve({ name, colour, points }, at, x, y) {
  const places = points.map(([inFlight, rate]) => [x.place(inFlight), y.place(rate)]).filter(([across, up]) => across !== null && up !== null);
  const drawnAt = places.map(([across, up]) => [across, 100 - up]);
  const joints = drawnAt.slice(1).map((place, before) => segment(`curve ${colour}`, drawnAt[before], place));
  return [...joints, ...drawnAt.flatMap((place) => mark(SHAPES[at % SHAPES.length], colour, place, name))];
}

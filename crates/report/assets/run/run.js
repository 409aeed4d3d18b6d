// The run, which is in the page as JSON, and its cells: the arms and samples that are compared with
// each other.

const TEXT = document.getElementById("run").textContent;
const RUN = JSON.parse(TEXT);
// No text in the JSON holds a quotation mark that is not escaped, so the first such key is the run's.
const SEED = /"seed": ?(\d+)/.exec(TEXT)?.[1] ?? "";

// The time by which arms are compared: the mean latency of requests at a given rate, else the time of
// the sample.
function comparedTime(row) {
  return row.mean_us === null || row.mean_us === undefined ? row.seconds : row.mean_us / 1e6;
}

function isSameArm(one, other) {
  return ["lang", "method", "threads", "depth"].every((field) => one[field] === other[field]);
}

// The cells in the order of their first arms, each with its arms, those of them with counted samples,
// its noise and the indexes of its samples.
function readCells() {
  const cells = new Map();
  RUN.arms.forEach((arm, index) => {
    if (!cells.has(arm.cell)) cells.set(arm.cell, newCell(arm));
    cells.get(arm.cell).arms.push(newArm(arm, `/arms/${index}`));
  });
  const unassigned = [];
  RUN.rows.forEach((row, index) => {
    const cell = cells.get(row.cell);
    (cell?.rows ?? unassigned).push(index);
    cell?.arms.find(({ arm }) => isSameArm(arm, row) && arm.model === row.model)?.samples.push(row);
  });
  for (const cell of cells.values()) cell.counted = cell.arms.filter(({ arm }) => arm.runs > 0);
  return [[...cells.values()], unassigned];
}

function newCell({ cell: name, cache }) {
  const noiseAt = RUN.noise.findIndex((noise) => noise.cell === name);
  const nameWithoutCache = name.replaceAll(cache, "").replace(/[, ]+$/, "");
  return { name, cache, nameWithoutCache, arms: [], rows: [], noiseAt, noise: RUN.noise[noiseAt] };
}

function newArm(arm, at) {
  return { arm, at, samples: [], name: () => armName(arm) };
}

// The name, with language and concurrency where it alone is ambiguous.
function armName(arm) {
  const isSame = (other) => ["cell", "lang", "method"].every((field) => other[field] === arm[field]);
  const isAmbiguous = RUN.arms.filter(isSame).length > 1;
  const isPolyglot = RUN.arms.some(({ lang }) => lang !== RUN.arms[0].lang);
  const more = [...(isPolyglot ? [arm.lang] : []), ...(isAmbiguous ? [`${arm.threads}${SPACE}×${SPACE}${arm.depth}`] : [])];
  return more.length > 0 ? [methodName(arm.method), " ", element("small", { text: more.join(", ") })] : [methodName(arm.method)];
}

// A name, which may be broken after each underscore.
function methodName(method) {
  const parts = method.split(/(?<=_)/).flatMap((part, at) => (at ? [element("wbr"), part] : [part]));
  return element("code", {}, ...parts);
}

// Tables: the numbers of the arms, every column of the samples, what was discarded and what was not
// available.

// Head, field, and whether the value is an estimate with an interval.
const COLUMNS = [
  ["threads", "threads"],
  ["depth", "depth"],
  ["counted", "runs"],
  ["discarded", "discarded"],
  ["time", "seconds", true],
  ["÷ baseline", "ratio", true],
  ["÷ fastest", "ratio_to_best", true],
  ["÷ blocking, same language", "ratio_to_own", true],
  ["throughput", "bytes_per_s"],
  ["operations", "ops_per_s"],
  ["CPU s a GB", "cpu_s_per_gb"],
  ["CPU s per million operations", "cpu_s_per_million_ops"],
  ["p50", "p50_us"],
  ["p95", "p95_us"],
  ["p99", "p99_us"],
  ["switches per operation", "switches_per_op"],
  ["peak memory", "memory_bytes"],
  ["punted", "punted"],
  ["device reads per operation", "device_reads_per_op"],
];

// A table that scrolls, also with the keyboard. A head is [text, whether its column has texts].
function table(title, heads, rows) {
  if (rows.length === 0) return null;
  const cells = heads.map(([text, isText]) => element("th", { scope: "col", className: isText ? "text" : "", text }));
  const made = element(
    "table",
    {},
    element("caption", { text: title }),
    element("thead", {}, element("tr", {}, ...cells)),
    element("tbody", {}, ...rows),
  );
  return element("div", { className: "scroll", role: "region", tabindex: "0", "aria-label": title }, made);
}

function textCell(text) {
  return element("td", { className: "text", text });
}

function armTable(cell) {
  const heads = [...["arm", "language", "model"].map((head) => [head, true]), ...COLUMNS.map(([head]) => [head, false])];
  const rows = cell.arms.map(({ at, arm }) => {
    const numbers = COLUMNS.map(([, field, isEstimate]) => {
      // Work on names alone has no throughput.
      if (field === "bytes_per_s" && arm.bytes_per_s === 0) return element("td", { text: NONE });
      return element("td", {}, ...(isEstimate ? interval(`${at}/${field}`) : [number(`${at}/${field}`)]));
    });
    const name = element("th", { scope: "row" }, methodName(arm.method));
    return element("tr", { className: arm.among_best ? "best" : "" }, name, textCell(arm.lang), textCell(arm.model), ...numbers);
  });
  return table(`All numbers of ${cell.name}`, heads, rows);
}

// The samples with the indexes `rows`, with all columns of the JSON that are not lists.
function sampleTable(title, rows) {
  const fields = Object.keys(RUN.rows[rows[0]]).filter((field) => !Array.isArray(RUN.rows[rows[0]][field]));
  const lines = rows.map((at) => {
    const cells = fields.map((field) => {
      const value = RUN.rows[at][field];
      if (typeof value === "string") return textCell(value);
      if (typeof value === "boolean") return element("td", { text: value ? "yes" : "no" });
      return element("td", {}, number(`/rows/${at}/${field}`));
    });
    return element("tr", {}, ...cells);
  });
  const heads = fields.map((field) => [field, typeof RUN.rows[rows[0]][field] === "string"]);
  return table(`${title}: every column`, heads, lines);
}

// All samples of a cell, folded. The table is made when it is opened.
function foldedSamples(name, rows) {
  const folded = element("details", {}, element("summary", {}, `${name} `, element("small", { text: rows.length })));
  folded.addEventListener("toggle", () => folded.append(sampleTable(name, rows)), { once: true });
  return folded;
}

function discardTable() {
  const rows = RUN.rows.filter(({ discarded }) => discarded !== "").map((row) => {
    const texts = [row.cell || `${row.workload}, ${row.cache}`, `${row.lang} ${row.method}`, `${row.threads} × ${row.depth}`, String(row.block), row.discarded];
    return element("tr", {}, ...texts.map(textCell));
  });
  const heads = ["workload", "arm", "threads × depth", "block", "reason"].map((head) => [head, true]);
  return table("They are drawn as crosses and not counted", heads, rows);
}

function unavailableTable() {
  const rows = RUN.unavailable.map(({ lang, method, reason }) => element("tr", {}, ...[lang, method, reason].map(textCell)));
  return table("Arms that could not run here", ["language", "arm", "reason"].map((head) => [head, true]), rows);
}

// What was required of commands, and whether it was met.
function requirementTable() {
  const rows = RUN.verdicts.map(({ outcome, cell, requirement, measured }) => {
    const texts = [outcome === "unmeasured" ? "not measured" : outcome, cell, requirement, measured];
    return element("tr", { className: outcome }, ...texts.map(textCell));
  });
  return table("Requirements", ["outcome", "case", "required", "measured"].map((head) => [head, true]), rows);
}

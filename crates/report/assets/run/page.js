// The sections of the page, in their order.

function section(title, ...inside) {
  const parts = inside.flat().filter((part) => part !== null);
  return parts.length > 0 ? element("section", {}, element("h2", { text: title }), ...parts) : null;
}

function list(tag, className, items) {
  return items.length > 0 ? element(tag, { className }, ...items) : null;
}

function item(text) {
  return element("li", { text });
}

function term(name, ...value) {
  return element("div", {}, element("dt", { text: name }), element("dd", {}, ...value));
}

// What stands before the run: the answers of an advice.
function leadSection(lead) {
  if (lead === null) return null;
  const lists = lead.lists.filter(([, texts]) => texts.length > 0);
  const parts = lists.flatMap(([title, texts]) => [element("h3", { text: title }), element("ul", {}, ...texts.map(item))]);
  return section(lead.title, list("ul", "verdicts", lead.sentences.map(item)), parts);
}

function summarySection(cells) {
  if (cells.length === 0) return section("In short", element("p", { text: "Nothing was measured: the run has no arms." }));
  const items = cells.map((cell, at) => element("li", {}, element("a", { href: `#cell-${at}`, text: cell.name }), ` ${sentence(cell)}`));
  const note = `Ratios are of times: below 1 is faster. Brackets hold 95${SPACE}% confidence intervals.`;
  return section("In short", list("ul", "verdicts", items), element("p", { className: "note", text: note }));
}

function sentence(cell) {
  return RUN.findings.find((finding) => finding.cell === cell.name)?.sentence ?? "";
}

function cellSection(cell, at) {
  const made = section(
    cell.name,
    element("p", { className: "verdict", text: sentence(cell) }),
    noiseNote(cell),
    ratioFigure(cell),
    latencyFigure(cell),
    histogramFigure(cell),
    flightFigure(cell),
    sampleFigure(cell),
    armTable(cell),
  );
  made.id = `cell-${at}`;
  return made;
}

function noiseNote({ noise, noiseAt }) {
  if (!noise) return null;
  const at = `/noise/${noiseAt}`;
  const method = element("code", { text: noise.method });
  const floor = number(`${at}/floor`);
  return element("p", { className: "note" }, "Two copies of ", method, " differ by a ratio of ", ...interval(`${at}/ratio`), ": differences of less than ", floor, " are not ranked.");
}

function againSection() {
  const command = RUN.command === "" ? null : element("pre", {}, element("code", { text: RUN.command }));
  const note = element("p", { className: "note" }, "Seed ", number("/seed"), ". The page contains the run as JSON, format ", number("/schema"), ", in the element ", element("code", { text: "run" }), ".");
  return section("Run it again", command, note);
}

// Commands of the user's own may compare anything.
const IS_OF_COMMANDS = RUN.rows.length > 0 && RUN.rows.every(({ workload }) => workload === "run");
const KIND = IS_OF_COMMANDS ? "Commands" : "I/O models";

function titleOf(cells) {
  if (IS_OF_COMMANDS) return cells.length === 1 ? cells[0].name : `${cells.length} cases`;
  const names = [...new Set(cells.map(({ name }) => name.split(/[ ,]/)[0]))];
  if (names.length === 0) return "nothing measured";
  return names.length === 1 ? names[0] : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

function facts(cells) {
  const kinds = new Set(RUN.arms.map(({ lang, method, threads, depth }) => JSON.stringify([lang, method, threads, depth])));
  return [
    ...(RUN.started === "" ? [] : [term("started", RUN.started)]),
    ...(RUN.program === "" ? [] : [term("with", RUN.program)]),
    term("cells", cells.length),
    term("arms", kinds.size),
    // An advice has another number in each cell.
    ...(RUN.blocks > 0 ? [term("repetitions", number("/blocks"))] : []),
    term("samples", RUN.rows.length),
    term("discarded", RUN.rows.filter(({ discarded }) => discarded !== "").length),
  ];
}

const [CELLS, UNASSIGNED] = readCells();
document.title = `${KIND}: ${titleOf(CELLS)}`;
document.getElementById("kind").textContent = `${KIND} compared`;
document.getElementById("title").textContent = titleOf(CELLS);
document.getElementById("facts").append(...facts(CELLS));
const folded = [...CELLS.map(({ name, rows }) => [name, rows]), ["Samples without a cell", UNASSIGNED]].filter(([, rows]) => rows.length > 0);
const sections = [
  leadSection(JSON.parse(document.getElementById("lead").textContent)),
  summarySection(CELLS),
  section("Requirements", requirementTable()),
  ...CELLS.map(cellSection),
  section("Warm against cold", warmColdFigures(CELLS)),
  section("Notes", list("ul", "", RUN.notes.map(item))),
  section("Not available", unavailableTable()),
  section("Discarded", discardTable()),
  section("Machine", list("dl", "machine", RUN.machine.map(([name, value]) => term(name, value)))),
  againSection(),
  section("All samples", folded.map(([name, rows]) => foldedSamples(name, rows))),
];
document.getElementById("main").append(...sections.filter((made) => made !== null));

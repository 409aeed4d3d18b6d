// Tables and cards.

function button(text, act) {
  const made = element("button", { type: "button", text });
  made.addEventListener("click", act);
  return made;
}

function isolated(text) {
  return element("bdi", { text });
}

// A path, which may be broken after each slash.
function isolatedPath(text) {
  const parts = shown(text).split(/(?<=\/)/).flatMap((part, place) => (place ? [element("wbr"), part] : [part]));
  return element("bdi", {}, ...parts);
}

// A bar for a share of a whole, below a text that says the same.
function shareBar(part, whole) {
  const bar = element("i");
  bar.style.width = `${whole > 0 ? Math.min((100 * part) / whole, 100) : 0}%`;
  return element("span", { className: "share", "aria-hidden": "true" }, bar);
}

// A cell with a number. `data-value` has it exactly.
function numberCell(number, text, className = "") {
  return element("td", { className, "data-value": String(number), title: count(number), text });
}

// Orders of a column: names from A on, numbers and days from the largest on.
function byText(one, other) {
  return one < other ? -1 : one > other ? 1 : 0;
}

// A table: heads, each with its text, a class and what of a row its column is sorted by; then rows
// as lists of cells of which the first is the head of its row. All but `limit` rows are made when
// they are asked for.
function table(caption, heads, rows, make, limit) {
  const body = element("tbody");
  let order = rows;
  const append = (from, to) => order.slice(from, to).forEach((row) => body.append(make(row)));
  const cells = heads.map(([text, className, key]) => {
    const cell = element("th", { scope: "col", className: className ?? "" });
    if (key) cell.append(button(text, () => sortBy(cell, key)));
    else cell.textContent = text;
    return cell;
  });
  function sortBy(cell, key) {
    const isText = typeof key(rows[0]) === "string";
    const first = isText ? "ascending" : "descending";
    const direction = cell.getAttribute("aria-sort") === first ? (isText ? "descending" : "ascending") : first;
    for (const other of cells) other.removeAttribute("aria-sort");
    cell.setAttribute("aria-sort", direction);
    const sign = direction === "ascending" ? 1 : -1;
    order = [...rows].sort((one, other) => sign * byText(key(one), key(other)));
    const made = body.rows.length;
    body.replaceChildren();
    append(0, made);
  }
  const made = element("table", {}, element("caption", {}, ...caption), element("thead", {}, element("tr", {}, ...cells)), body);
  append(0, limit);
  const all = element("div", { className: "scroll" }, made);
  if (rows.length > 0) {
    const copier = button("Copy as CSV", async () => {
      const done = await toClipboard(csv(heads, order, make));
      tell(done ? `Copied: ${plural(order.length, "row", "rows")}` : "The browser refused to copy.");
    });
    copier.className = "csv";
    all.append(copier);
  }
  if (rows.length > limit) {
    const more = button(`Show ${count(rows.length - limit)} more`, () => {
      const first = body.rows.length;
      append(first, first + 1000);
      if (body.rows.length === rows.length) more.remove();
      else more.textContent = `Show ${count(rows.length - body.rows.length)} more`;
      body.rows[first]?.querySelector("button")?.focus();
    });
    more.className = "more";
    made.after(more);
  }
  return all;
}

// All rows as comma-separated values (RFC 4180). A name that a spreadsheet would calculate has an
// apostrophe before it.
function csv(heads, rows, make) {
  const field = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const cell = (made) => {
    if (made.dataset.value !== undefined) return made.dataset.value;
    const text = made.querySelector("bdi")?.textContent ?? made.textContent;
    return field(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text);
  };
  const lines = [heads.map(([text]) => field(text)), ...rows.map((row) => [...make(row).children].map(cell))];
  return lines.map((fields) => `${fields.join(",")}\r\n`).join("");
}

function rowHead(...inside) {
  return element("th", { scope: "row" }, ...inside);
}

function sumCells(sums, whole, names = true) {
  const cells = [numberCell(sums[0], bytes(sums[0])), numberCell(sums[1], bytes(sums[1]), names ? "narrow-off" : ""), numberCell(sums[2], count(sums[2]))];
  cells[MEASURE === AREAS.apparent ? 1 : 0].append(shareBar(MEASURE.of(sums), MEASURE.of(whole)));
  return cells;
}

// The heads of the columns of sums; `of` returns the sums of a row.
function sumHeads(of) {
  return [["Disk usage", "", (row) => of(row)[0]], ["Size", "narrow-off", (row) => of(row)[1]], ["Entries", "", (row) => of(row)[2]]];
}

// A card. Without a body there is none.
function card(title, id, ...inside) {
  const head = element("h2", { text: title, id: `${id}-title` });
  return element("section", { className: "card", id, "aria-labelledby": `${id}-title` }, head, ...inside);
}

function note(text) {
  return element("p", { className: "note", text });
}

// The card of totals by a property.
function totalsCard(title, id, head, rows, limit) {
  const make = (row) => element("tr", {}, rowHead(isolated(shown(row[0]))), ...sumCells(row.slice(1), DATA.total));
  const heads = [[head, "", ([label]) => label], ...sumHeads((row) => row.slice(1))];
  return card(title, id, table([], heads, rows, make, limit));
}

// The card of the largest directories or files, each with a way to its place on the map if it, or
// the directory of a file, has one.
function largestCard(title, id, rows, columns, go) {
  const make = ([text, node, ...sums]) => {
    const name = node >= 0 ? button("", () => go(node, childByName(node, text.slice(text.lastIndexOf("/") + 1)) ?? node)) : element("span");
    name.append(isolatedPath(text));
    return element("tr", {}, rowHead(name), ...sumCells(sums, DATA.total).slice(0, columns));
  };
  const heads = [["Path", "", ([text]) => text], ...sumHeads(([, , ...sums]) => sums).slice(0, columns)];
  return card(title, id, table([], heads, rows, make, 12));
}

// The days after which a file is old.
const OLD_DAYS = 365;

// The card of the largest files of the map that are old.
function oldCard(go) {
  const last = Math.floor(DATA.end / 86400) - OLD_DAYS;
  const nodes = [...NODES.name.keys()].filter((node) => !isDir(node) && NODES.day[node] !== null && NODES.day[node] <= last);
  nodes.sort((one, other) => MEASURE.of(sum(other)) - MEASURE.of(sum(one)));
  const make = (node) => {
    const name = button("", () => go(NODES.parent[node], node));
    name.append(isolatedPath(path(node)));
    return element("tr", {}, rowHead(name), ...sumCells(sum(node), DATA.total).slice(0, 2), element("td", { text: day(NODES.day[node]) }));
  };
  const heads = [["Path", "", path], ...sumHeads(sum).slice(0, 2), ["Modified", "", (node) => NODES.day[node]]];
  const list = nodes.length > 0 ? table([], heads, nodes.slice(0, 50), make, 12) : note("No file on the map is that old.");
  return card("Large and not modified for a year", "old-files", list);
}

function growthCard(go) {
  const { rows, total, since, unmatched } = DATA.growth;
  const amount = (number, format) => {
    const made = numberCell(number, signed(number, format));
    made.classList.add(number > 0 ? "up" : "down");
    return made;
  };
  const make = ([text, node, allocated, apparent, entries, complete]) => {
    const name = node >= 0 ? button("", () => go(node, node)) : element("span");
    name.append(isolatedPath(text));
    const mark = complete ? [] : [element("span", { className: "note", text: " (incomplete)" })];
    return element("tr", {}, rowHead(name, ...mark), amount(allocated, bytes), amount(apparent, bytes), amount(entries, count));
  };
  const days = Math.max((DATA.end - since) / 86400, 0);
  const rate = days >= 0.5 ? `, ${signed(total[0] / days, bytes)} a day` : "";
  const summary = `Since ${minuteText(since)}: ${signed(total[0], bytes)} of disk usage${rate}, ${signed(total[2], count)} entries.`;
  const gone = [["Only now", unmatched.new], ["Only then", unmatched.old]].filter(([, paths]) => paths.length > 0);
  const notes = gone.map(([when, paths]) => note(`${when}: ${paths.map(shown).join(", ")}`));
  const heads = [["Directory", "", ([text]) => text], ...sumHeads(([, , ...sums]) => sums)];
  const list = rows.length > 0 ? [table([], heads, rows, make, 20)] : [note("No directory grew or shrank.")];
  const made = card("What grew", "growth", element("p", { text: summary }), ...notes, ...list);
  made.classList.add("wide");
  return made;
}

function errorsCard() {
  const { completeness: found, errors } = DATA;
  const facts = [
    ["Directories read", found.complete], ["of them incomplete", found.partial], ["Directories not read", found.failed],
    ["Directories skipped", found.skipped], ["Operands missing", found.missing_roots], ["Entries without metadata", found.unknown_entries],
    ["Unknown values", found.unknown_values], ["Times out of range", found.clamped_times],
  ];
  facts[0][1] += found.partial;
  const list = element("dl", { className: "kv" });
  for (const [name, number] of facts) {
    if (number > 0 || name === "Directories read") list.append(element("dt", { text: name }), element("dd", { text: count(number) }));
  }
  const stopped = found.stopped ? [note(`The scan was stopped: ${shown(found.stopped)}.`)] : [];
  const group = ([op, why, number]) => element("tr", {}, rowHead(shown(`${op}: ${why}`)), numberCell(number, count(number)));
  const row = ([text, op, why]) => element("tr", {}, rowHead(isolatedPath(text)), element("td", { className: "text", text: shown(`${op}: ${why}`) }));
  const tables = errors.count === 0 ? [note("No operation failed.")] : [
    table([plural(errors.count, "operation failed", "operations failed")], [["Failure"], ["Times"]], errors.groups, group, 10),
    table([`The first ${count(errors.rows.length)}`], [["Path"], ["Failure"]], errors.rows, row, 10),
  ];
  return card("Completeness and errors", "errors", list, ...stopped, ...tables);
}

function aboutCard() {
  const list = element("dl", { className: "kv" });
  const facts = [["Machine", DATA.host], ["Scanned", `${minuteText(DATA.start)} to ${minuteText(DATA.end)}`], ["By", DATA.tool], ...DATA.options];
  if (DATA.reused.length > 0) facts.push(["Copied from", `${DATA.reused[0]}: ${count(DATA.reused[1])} directories, ${count(DATA.reused[2])} entries`]);
  for (const [name, text] of facts) list.append(element("dt", { text: shown(name) }), element("dd", { text: shown(text) }));
  const known = DATA.total[2] - NODES.name.length;
  const cut = known > 0
    ? `The map has the ${count(NODES.name.length)} largest of ${count(DATA.total[2])} entries. The rest of a directory is one hatched cell with its sums; its colour stands for most of its bytes.`
    : "The map has every entry.";
  return card("About this page", "about", list,
    note("A file with several names counts once in each directory that has any of them, as in du, so a directory may be smaller than its entries together."),
    note(cut),
    ...(DATA.growth ? [note("Growth is recorded per directory: a file has the colour of the growth of its directory itself.")] : []),
    note(DATA.ignored
      ? `Version control ignores ${bytes(DATA.ignored[0])} in ${plural(DATA.ignored[2], "file", "files")}.`
      : "The inventory does not record ignored files: use fathom scan --also ignored."));
}

// The page: what is shown, and how the map, the table and the address of the page follow each other.

const at = (id) => document.getElementById(id);
const view = { dir: TOP, colours: COLOURS.kind, area: MEASURE, only: new Set(), wanted: "", selected: null };
const map = new TreeMap(at("frame"), at("base"), at("over"), {
  open: (dir) => go(dir),
  up: () => { if (parentOf(view.dir) !== null) go(parentOf(view.dir), view.dir); },
  more: (rect) => openRest(rect),
  copy: (rect) => copy(rect),
  select: (rect, event) => select(rect, event),
  tell: () => tell(describe(view.selected ?? { node: view.dir, isRest: false }).join(", ")),
});

// Says something to those who do not see the page.
function tell(text) {
  at("live").textContent = text;
}

function nameOf(node) {
  return node === TREES ? "All trees" : shown(NODES.name[node]);
}

// Shows a directory, and selects one of its entries. The address gets a mark, so that the browser's
// own way back leads back, and a link leads to the same directory in a later inventory.
async function go(dir, selected = null) {
  if (!isDir(dir)) return;
  at("nearest").hidden = true;
  const focused = at("panel").contains(document.activeElement) || at("crumbs").contains(document.activeElement);
  view.dir = dir;
  const mark = dir === TOP ? "#" : `${MARK}${encoded(path(dir))}`;
  if ((location.hash || "#") !== mark) history.pushState(null, "", mark);
  render(selected, focused);
  await fetchRest(dir);
}

function render(selected, focused) {
  map.show(view.dir, view.colours, view.area, view.only);
  crumbs();
  entries();
  legend();
  select(null, null);
  const all = sum(view.dir);
  tell(`${nameOf(view.dir)}: ${bytes(MEASURE.of(all))}, ${plural(all[2], "entry", "entries")}`);
  if (selected !== null && selected !== view.dir) map.selectNode(selected, false);
  if (focused) at("panel").querySelector("tbody button")?.focus();
}

function moreText(entries) {
  return entries > 0 ? `${count(entries)} more` : "More";
}

function crumbs() {
  at("crumbs").replaceChildren(...chain(view.dir).map((node) => {
    const link = button("", () => go(node));
    link.append(isolated(nameOf(node)));
    if (node === view.dir) link.setAttribute("aria-current", "page");
    return element("li", {}, link);
  }));
}

// The most entries that a search lists.
const FOUND_MAX = 500;

// The table of the entries of the map whose names have the text that is looked for.
function found() {
  const part = view.wanted.toLowerCase();
  const nodes = [...NODES.name.keys()].filter((node) => NODES.name[node].toLowerCase().includes(part));
  nodes.sort((one, other) => view.area.of(sum(other)) - view.area.of(sum(one)));
  const make = (node) => {
    const name = button("", () => {
      // The table is that of the map again.
      view.wanted = at("find").value = "";
      go(isDir(node) ? node : NODES.parent[node], isDir(node) ? null : node);
    });
    name.append(isolatedPath(path(node)));
    if (isDir(node)) name.classList.add("dir");
    return element("tr", {}, rowHead(name), ...sumCells(sum(node), DATA.total), element("td", { className: "narrow-off", text: day(NODES.day[node]) }));
  };
  const heads = [["Path", "", path], ...sumHeads(sum), ["Modified", "narrow-off", (node) => NODES.day[node] ?? -Infinity]];
  const all = plural(nodes.length, "entry", "entries");
  const caption = `${all} of the map with “${view.wanted}” in the name`;
  const made = table([caption], heads, nodes.slice(0, FOUND_MAX), make, 100);
  made.querySelector("table").id = "entries";
  at("panel").replaceChildren(made);
  tell(caption);
}

// The table of the entries of the directory, with the same numbers as the map.
function entries() {
  if (view.wanted !== "") {
    found();
    return;
  }
  const whole = sum(view.dir);
  const more = rest(view.dir);
  const rows = children(view.dir).map((node) => ({ node, sums: sum(node), isRest: false }));
  if (more[2] > 0 || canFetch(view.dir)) rows.push({ node: view.dir, sums: more, isRest: true });
  rows.sort((one, other) => view.area.of(other.sums) - view.area.of(one.sums));
  const make = ({ node, sums, isRest }) => {
    const name = element("button", { type: "button" }, isolated(isRest ? moreText(sums[2]) : nameOf(node)));
    name.addEventListener("click", () => {
      if (isRest) openRest({ node });
      else if (isDir(node)) go(node);
      else copy({ node, isRest });
    });
    const mark = !isRest && NODES.state[node] > 0 ? [element("span", { className: "note", text: ` ${["", "(partly read)", "(not read)", "(left out)"][NODES.state[node]]}` })] : [];
    const day_ = isRest ? "" : day(NODES.day[node]);
    if (isDir(node) && !isRest) name.classList.add("dir");
    const head = rowHead(name, ...mark);
    const row = element("tr", { "data-node": isRest ? "rest" : String(node) }, head, ...sumCells(sums, whole), element("td", { className: "narrow-off", text: day_ }));
    const show = () => map.selectNode(node, isRest);
    row.addEventListener("pointerenter", show);
    row.addEventListener("pointerleave", () => map.select(null, null));
    name.addEventListener("focus", show);
    return row;
  };
  const nameOfRow = ({ node, isRest }) => (isRest ? "" : nameOf(node));
  const dayOfRow = ({ node, isRest }) => (isRest ? null : NODES.day[node]) ?? -Infinity;
  const heads = [["Name", "", nameOfRow], ...sumHeads(({ sums }) => sums), ["Modified", "narrow-off", dayOfRow]];
  const caption = [view.dir === TREES ? "All trees" : isolatedPath(path(view.dir))];
  const made = table(caption, heads, rows, make, 100);
  made.querySelector("table").id = "entries";
  at("panel").replaceChildren(made);
}

function legend() {
  const { labels, prefix, places } = view.colours;
  const used = new Set(map.rects.filter((rect) => rect.isCell).map((rect) => view.colours.classOf(rect)));
  const items = labels.map((label, place) => [label, places ? places[place] : place]).filter(([, place]) => used.has(place));
  at("legend").replaceChildren(...items.map(([label, place]) => {
    const swatch = element("span", { className: "swatch" });
    swatch.style.background = `var(${prefix}${place})`;
    const only = button("", () => {
      const isPressed = !view.only.delete(place);
      if (isPressed) view.only.add(place);
      only.setAttribute("aria-pressed", String(isPressed));
      map.show(view.dir, view.colours, view.area, view.only);
    });
    only.setAttribute("aria-pressed", String(view.only.has(place)));
    only.append(swatch, isolated(label));
    return element("li", {}, only);
  }));
  if (view.colours === COLOURS.growth) {
    at("legend").append(element("li", { className: "note", text: "A file has the colour of the growth of its directory itself, including removed entries." }));
  }
}

function describe(rect) {
  const { node, isRest } = rect;
  const sums = isRest ? rest(node) : sum(node);
  const where = node === TREES ? "All trees" : shown(path(node));
  const title = isRest ? `${where}: ${plural(sums[2], "more entry", "more entries")}` : where;
  const facts = [bytes(MEASURE.of(sums)), percent(MEASURE.of(sums), MEASURE.of(DATA.total))];
  if (sums[1] !== MEASURE.of(sums)) facts.push(`size ${bytes(sums[1])}`);
  if (isDir(node)) facts.push(plural(sums[2], "entry", "entries"));
  if (!isRest && node !== TREES && NODES.day[node] !== null) facts.push(`${isDir(node) ? "newest" : "modified"} ${day(NODES.day[node])}`);
  const owner = isRest || isDir(node) ? -1 : NODES.owner[node];
  if (owner >= 0) facts.push(shown(DATA.by.user[owner][0]));
  if (!isDir(node)) facts.push(DATA.kinds[known(NODES.kind[node], DATA.kinds.length - 1)].toLowerCase());
  const grown = GROWTH.get(node);
  if (grown !== undefined && !isRest) facts.push(`growth ${signed(grown, bytes)}`);
  return [title, facts.join(" · ")];
}

function select(rect, event) {
  view.selected = rect;
  const [title, facts] = describe(rect ?? { node: view.dir, isRest: false });
  at("status-path").textContent = title;
  at("status-facts").textContent = facts;
  const tip = at("tip");
  tip.hidden = !rect || !event || event.pointerType === "touch";
  if (!tip.hidden) {
    tip.replaceChildren(isolated(title), element("span", { text: facts }));
    const [width, height] = [tip.offsetWidth, tip.offsetHeight];
    const x = event.clientX + 16 + width > innerWidth ? Math.max(event.clientX - width - 12, 4) : event.clientX + 16;
    const y = event.clientY + 18 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 18;
    tip.style.transform = `translate(${x}px, ${y}px)`;
  }
  const lit = rect ? (rect.first?.isRest ? "rest" : String(rect.first?.node ?? rect.node)) : "";
  for (const row of at("panel").querySelectorAll("tr[data-node]")) row.classList.toggle("lit", row.dataset.node === lit);
}

async function copy(rect) {
  const node = rect?.node ?? view.dir;
  if (node === TREES) return;
  const text = shellWord(path(node));
  const done = await toClipboard(text);
  if (rect) select(rect.first ? rect : null, null);
  const said = done ? `Copied: ${text}` : `The browser refused to copy; the path is ${text}`;
  at("status-facts").textContent = said;
  tell(said);
}

// Returns whether the text is in the clipboard.
async function toClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

// Pages of files have no clipboard in some browsers, but a selection can be copied.
function copyBySelection(text) {
  const field = element("textarea", { className: "unseen", "aria-hidden": "true" });
  field.value = text;
  document.body.append(field);
  const focused = document.activeElement;
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  focused?.focus();
  return done;
}

// The rest of a directory: a directory further down is opened, so that more of it has an area. The
// page of a server fetches what is missing.
function openRest(rect) {
  if (rect.node !== view.dir && rect.node !== TREES) go(rect.node);
  else fetchRest(view.dir, true);
}

async function fetchRest(dir, asked = false) {
  if (!canFetch(dir) || (!asked && PLACES.has(dir))) return;
  const arrived = await fetched(dir);
  // The keyboard stays where it is, and so does the selection.
  if (arrived > 0 && view.dir === dir) {
    const focused = asked || at("panel").contains(document.activeElement);
    render(view.selected?.isRest === false ? view.selected.node : null, focused);
  }
  if (arrived !== null) tell(arrived > 0 ? plural(arrived, "more entry", "more entries") : "All entries are shown.");
}

// Fetches more of a directory. Returns the number of entries that have arrived; null after an error,
// which is shown.
async function fetched(dir) {
  at("loading").hidden = false;
  try {
    return await fetchEntries(dir);
  } catch (error) {
    at("warning").hidden = false;
    at("warning").textContent = `Cannot show more of this directory: ${error.message}.`;
    return null;
  } finally {
    at("loading").hidden = true;
  }
}

function facts() {
  const names = DATA.title.map(shown);
  const more = DATA.roots - names.length;
  at("title").textContent = more > 0 ? `${names.join(", ")} and ${count(more)} more` : names.join(", ");
  document.title = `${at("title").textContent} - fathom report`;
  const list = [["Disk usage", bytes(DATA.total[0])], ["Apparent size", bytes(DATA.total[1])], ["Entries", count(DATA.total[2])],
    ["Scanned", minuteText(DATA.end)], ["Complete", DATA.complete ? "yes" : DATA.ratio === null ? "no" : `no: ${DATA.ratio}`]];
  if (MEASURE === AREAS.apparent) list.shift();
  if (DATA.growth) list.splice(-2, 0, [`Since ${dateText(DATA.growth.since * 1000)}`, signed(DATA.growth.total[0], bytes)]);
  at("facts").replaceChildren(...list.map(([name, text]) => element("div", {}, element("dt", { text: name }), element("dd", { text }))));
  if (!DATA.complete) {
    at("warning").hidden = false;
    at("warning").textContent = "The inventory is incomplete, so sums may be too small. The end of the page lists the gaps.";
  }
}

function choose(select, choices, act) {
  select.replaceChildren(...Object.entries(choices).map(([key, { title }]) => element("option", { value: key, text: title })));
  select.addEventListener("change", () => { act(choices[select.value]); render(null, false); });
}

function cards() {
  const made = [
    ...(DATA.growth ? [growthCard(go)] : []),
    largestCard("Largest directories", "top-dirs", DATA.topDirs, 3, go),
    largestCard("Largest files", "top-files", DATA.topFiles, 2, go),
    oldCard(go),
    totalsCard("Size of entries", "by-size", "Class", DATA.by.size, 20),
    totalsCard("Time since the last modification", "by-age", "Age", DATA.by.age, 20),
    totalsCard("Types", "by-kind", "Type", DATA.by.kind, 20),
    totalsCard("Extensions", "by-ext", "Extension", DATA.by.ext, 12),
    totalsCard("Owners", "by-user", "Owner", DATA.by.user, 12),
    errorsCard(),
    aboutCard(),
  ];
  at("cards").replaceChildren(...made);
  const source = DATA.fetches === null ? "This file needs no network." : "Omitted directories are fetched when they are opened.";
  at("foot").textContent = `Made by ${DATA.maker} from an inventory. ${source}`;
}

// Shows the directory of the mark in the address. What the page of a server leaves out is fetched.
async function followMark() {
  at("nearest").hidden = true;
  const mark = location.hash;
  const wanted = mark.startsWith(MARK) ? mark.slice(MARK.length) : "";
  const look = () => {
    const [dir, left] = followed(wanted);
    const found = dir === TREES ? TOP : dir;
    if (view.dir !== found) {
      view.dir = found;
      render(null, false);
    }
    return left;
  };
  view.dir = null;
  let left = look();
  while (left !== "" && canFetch(view.dir) && location.hash === mark) {
    if (await fetched(view.dir) === null) return;
    left = look();
  }
  if (left === "" || location.hash !== mark) return;
  at("nearest").hidden = false;
  at("nearest").textContent = `This page does not contain ${decoded(wanted)}: it shows the nearest parent directory.`;
}

facts();
choose(at("colour"), COLOURS, (colours) => { Object.assign(view, { colours, only: new Set() }); });
choose(at("area"), AREAS, (area) => { view.area = area; });
if (DATA.growth) { view.colours = COLOURS.growth; at("colour").value = "growth"; }
at("area").value = Object.keys(AREAS).find((key) => AREAS[key] === view.area);
cards();
at("find").addEventListener("input", () => {
  view.wanted = at("find").value.trim();
  entries();
});
at("copy").addEventListener("click", () => copy(view.selected));
at("panel").addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || parentOf(view.dir) === null) return;
  go(parentOf(view.dir), view.dir);
  event.preventDefault();
});
addEventListener("popstate", followMark);
// Paper is light, whatever the screen is.
for (const [event, isPrinted] of [["beforeprint", true], ["afterprint", false]]) {
  addEventListener(event, () => {
    document.documentElement.classList.toggle("printed", isPrinted);
    map.lay();
  });
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => map.refresh());
followMark().then(() => fetchRest(view.dir));

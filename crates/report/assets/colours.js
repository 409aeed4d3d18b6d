// How the cells are coloured. A way of colouring has classes with labels, each with a colour of the
// style sheet, and the class of a cell.

const OWNERS_SHOWN = 10;
const GROWTH = new Map();
if (DATA.growth) {
  for (let at = 0; at < DATA.growth.nodes.length; at += 2) GROWTH.set(DATA.growth.nodes[at], DATA.growth.nodes[at + 1]);
}

// A column of properties: of a directory those of most of its rest, or else of its largest entry.
function property(column, rect) {
  let node = rect.node;
  while (NODES[column][node] < 0 && children(node).length > 0) [node] = children(node);
  return node === TREES ? -1 : NODES[column][node];
}

function known(place, last) {
  return place < 0 || place > last ? last : place;
}

const OWN_GROWTH = new Map();

// The growth and the size of what a directory has itself, outside of the directories in it that are
// nodes.
function ownGrowth(dir) {
  if (!OWN_GROWTH.has(dir)) {
    let [grown, size] = [GROWTH.get(dir) ?? 0, sum(dir)[0]];
    for (const child of children(dir).filter(isDir)) [grown, size] = [grown - (GROWTH.get(child) ?? 0), size - sum(child)[0]];
    OWN_GROWTH.set(dir, [grown, size]);
  }
  return OWN_GROWTH.get(dir);
}

// Of a single file no growth is known, so a file has the colour of its directory's own files.
function growthClass(rect) {
  const isWhole = isDir(rect.node) && !rect.isRest;
  const dir = isDir(rect.node) ? rect.node : NODES.parent[rect.node];
  if (dir === TREES) return 3;
  const [grown, size] = isWhole ? [GROWTH.get(dir) ?? 0, sum(dir)[0]] : ownGrowth(dir);
  if (grown < 0) return 4;
  const share = size > 0 ? grown / size : 0;
  return share >= 0.5 ? 0 : share >= 0.1 ? 1 : grown > 0 ? 2 : 3;
}

const COLOURS = {
  kind: {
    title: "Type", labels: DATA.kinds, prefix: "--kind-",
    classOf: (rect) => known(property("kind", rect), DATA.kinds.length - 1),
  },
  age: {
    title: "Age", labels: [...DATA.ages, "unknown"], prefix: "--age-",
    classOf: (rect) => known(property("age", rect), DATA.ages.length),
  },
  owner: {
    title: "Owner", prefix: "--owner-",
    labels: [...DATA.by.user.slice(0, OWNERS_SHOWN).map((row) => shown(row[0])), "others"],
    places: [...DATA.by.user.slice(0, OWNERS_SHOWN).keys(), OWNERS_SHOWN],
    classOf: (rect) => {
      const owner = property("owner", rect);
      return owner < 0 || owner >= OWNERS_SHOWN ? OWNERS_SHOWN : owner;
    },
  },
};
// The extension of a file, by the rule of the inventory.
function extensionOf(name) {
  const dot = name.lastIndexOf(".");
  const extension = dot > 0 ? name.slice(dot + 1).toLowerCase() : "";
  return extension.length > 16 ? "" : extension;
}

const EXTENSIONS = DATA.by.ext.map(([extension]) => extension).filter((extension) => !extension.startsWith("(")).slice(0, OWNERS_SHOWN);
COLOURS.ext = {
  title: "Extension", prefix: "--owner-",
  labels: [...EXTENSIONS.map(shown), "others"], places: [...EXTENSIONS.keys(), OWNERS_SHOWN],
  classOf: (rect) => {
    let { node } = rect;
    while (!rect.isRest && isDir(node) && children(node).length > 0) [node] = children(node);
    const place = isDir(node) ? -1 : EXTENSIONS.indexOf(extensionOf(NODES.name[node]));
    return place < 0 ? OWNERS_SHOWN : place;
  },
};
if (DATA.growth) {
  COLOURS.growth = {
    title: "Growth", prefix: "--growth-",
    labels: ["new, or at least half new", "grew by 10 % or more", "grew", "did not grow", "shrank"],
    classOf: growthClass,
  };
}

if (DATA.ignored) {
  COLOURS.ignored = {
    title: "Version control", labels: ["not ignored", "ignored", "unknown"], prefix: "--ignored-",
    classOf: (rect) => known(property("ignored", rect), 2),
  };
}

const AREAS = {
  usage: { title: "Disk usage", of: (sums) => sums[0], text: (sums) => bytes(sums[0]) },
  apparent: { title: "Apparent size", of: (sums) => sums[1], text: (sums) => bytes(sums[1]) },
  entries: { title: "Entries", of: (sums) => sums[2], text: (sums) => plural(sums[2], "entry", "entries") },
};

// The measure of what is large: apparent sizes, where an import has nothing else.
const MEASURE = DATA.total[0] === 0 && DATA.total[1] > 0 ? AREAS.apparent : AREAS.usage;

function variable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// The colours of all classes, each with the colour of text on it.
function palette(colours) {
  const places = colours.places ?? [...colours.labels.keys()];
  const found = new Map();
  for (const place of places) {
    const colour = variable(colours.prefix + place);
    found.set(place, { colour, text: isLight(colour) ? "#14181d" : "#f5f7f9" });
  }
  return found;
}

function isLight(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return 0.299 * red + 0.587 * green + 0.114 * blue > 128;
}

"use strict";
// The data of the page: nodes in columns, the largest first, each after its parent. Sums are those
// that `fathom top` prints. A node is the index of its row; TREES is the place above the operands.

const DATA = JSON.parse(document.getElementById("data").textContent);
const NODES = DATA.nodes;
const TREES = -1;
const CHILDREN = new Map();

NODES.name.forEach((_, node) => adopt(node));

function adopt(node) {
  const parent = NODES.parent[node];
  if (!CHILDREN.has(parent)) CHILDREN.set(parent, []);
  CHILDREN.get(parent).push(node);
}

function children(node) {
  return CHILDREN.get(node) ?? [];
}

function isDir(node) {
  return node === TREES || NODES.entries[node] > 0;
}

// The sum of a node: allocated bytes, apparent bytes, entries.
function sum(node) {
  if (node === TREES) return DATA.total;
  return [NODES.blocks[node] * 512, NODES.apparent[node], Math.max(NODES.entries[node], 1)];
}

// The sum of the entries of a directory that are no nodes. An inode with names in several of its
// subdirectories counts once in the directory, so the rest may be less than nothing.
function rest(node) {
  return left(node).map((number) => Math.max(number, 0));
}

// The number of entries of a directory that are no nodes: 0 if every entry has one, and another
// number, if only less than nothing, if one has none.
function entriesLeft(node) {
  return left(node)[2];
}

function left(node) {
  const sums = [...sum(node)];
  if (node !== TREES) sums[2] -= 1;
  for (const child of children(node)) sum(child).forEach((number, at) => { sums[at] -= number; });
  return sums;
}

function parentOf(node) {
  if (node === TREES) return null;
  const parent = NODES.parent[node];
  return parent === TREES && !HAS_TREES ? null : parent;
}

// Whether several operands were scanned, or one that is no node.
const HAS_TREES = children(TREES).length !== 1 || DATA.roots !== 1;
const TOP = HAS_TREES ? TREES : children(TREES)[0];

function path(node) {
  const names = [];
  for (let at = node; at !== TREES; at = NODES.parent[at]) names.push(NODES.name[at]);
  names.reverse();
  return names.reduce((joined, name) => (joined.endsWith("/") ? joined + name : `${joined}/${name}`));
}

// The beginning of the address's mark of a directory, before its path.
const MARK = "#dir=";

// A path in a mark: bytes other than letters, digits and a few more as `%` with two digits.
function encoded(text) {
  return bytesOf(text).map((byte) => {
    const char = String.fromCharCode(byte);
    return /[\w.~/-]/.test(char) ? char : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }).join("");
}

function decoded(mark) {
  try {
    return shown(decodeURIComponent(mark));
  } catch {
    return mark;
  }
}

// The directory of an encoded path, or the nearest one above it that is a node, and the part of the
// path that leads on from there.
function followed(mark) {
  let [dir, left] = [mark === "" ? TOP : TREES, mark];
  const behind = (node) => {
    const name = encoded(NODES.name[node]);
    const start = name.endsWith("/") ? name : `${name}/`;
    return left === name ? "" : left.startsWith(start) ? left.slice(start.length) : null;
  };
  while (left !== "") {
    const next = children(dir).filter((child) => isDir(child) && behind(child) !== null);
    if (next.length === 0) break;
    // Of several trees, one may be in another.
    dir = next.reduce((one, other) => (NODES.name[other].length > NODES.name[one].length ? other : one));
    left = behind(dir);
  }
  return [dir, left];
}

// The directories from the top to a node.
function chain(node) {
  const nodes = [];
  for (let at = node; at !== null; at = parentOf(at)) nodes.push(at);
  return nodes.reverse();
}

function childByName(parent, name) {
  return children(parent).find((child) => NODES.name[child] === name);
}

// Text of a name: what controls a display is shown as an escape, and so is a byte that is no
// character. Such a byte is a lone surrogate, from U+DC80 on, as in Python.
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

function shown(name) {
  return name.replace(CONTROLS, (unit) => bytesOf(unit).map(octal).join(""));
}

function octal(byte) {
  return `\\${byte.toString(8).padStart(3, "0")}`;
}

function bytesOf(text) {
  const bytes = [];
  for (const char of text) {
    const code = char.codePointAt(0);
    if (code >= 0xdc80 && code <= 0xdcff) bytes.push(code - 0xdc00);
    else bytes.push(...new TextEncoder().encode(char));
  }
  return bytes;
}

// A path as a shell takes it for one word, so that pasting one never runs a command.
function shellWord(text) {
  if (/^[\w@%+=:,./-]+$/.test(text) && !/^[-~]/.test(text)) return text;
  if (text.search(CONTROLS) < 0) return `'${text.replaceAll("'", "'\\''")}'`;
  const escaped = text.replace(/['\\]/g, "\\$&").replace(CONTROLS, (unit) => bytesOf(unit).map(octal).join(""));
  return `$'${escaped}'`;
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

function bytes(number) {
  let [value, unit] = [Math.abs(number), 0];
  while (value >= 1023.95 && unit < UNITS.length - 1) [value, unit] = [value / 1024, unit + 1];
  const digits = unit === 0 || value >= 99.95 ? 0 : 1;
  return `${number < 0 ? "−" : ""}${value.toFixed(digits)} ${UNITS[unit]}`;
}

function signed(number, format) {
  return number > 0 ? `+${format(number)}` : number < 0 ? format(number) : "0";
}

function count(number) {
  return number.toLocaleString("en-US").replaceAll(",", " ").replace("-", "−");
}

function plural(number, one, many) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

function percent(part, whole) {
  const share = whole > 0 ? (100 * part) / whole : 0;
  return `${share > 0 && share < 0.1 ? "<0.1" : share.toFixed(1)} %`;
}

function day(number) {
  return number === null ? "" : dateText(number * 86400000);
}

function dateText(milliseconds) {
  const date = new Date(milliseconds);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString().slice(0, 10);
}

function minuteText(seconds) {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? "" : `${date.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

// Squarified treemaps: Bruls, Huizing and van Wijk, 2000. Rows are filled along the shorter side for
// as long as that makes their rectangles more like squares.

// Calls `place` with each item and its rectangle. `items` have a `weight` above 0, the largest first.
function squarify(items, x, y, width, height, place) {
  let left = items.reduce((all, item) => all + item.weight, 0);
  let at = 0;
  while (at < items.length && left > 0 && width > 0 && height > 0) {
    const side = Math.min(width, height);
    const scale = (width * height) / left;
    let end = at + 1;
    let row = items[at].weight;
    let worst = ratio(items[at].weight, items[at].weight, row, side, scale);
    while (end < items.length) {
      const more = row + items[end].weight;
      const next = ratio(items[at].weight, items[end].weight, more, side, scale);
      if (next > worst) break;
      [row, worst, end] = [more, next, end + 1];
    }
    const depth = (row * scale) / side;
    let along = 0;
    for (; at < end; at += 1) {
      const length = (items[at].weight / row) * side;
      if (width >= height) place(items[at], x, y + along, depth, length);
      else place(items[at], x + along, y, length, depth);
      along += length;
    }
    if (width >= height) [x, width] = [x + depth, width - depth];
    else [y, height] = [y + depth, height - depth];
    left -= row;
  }
}

// The largest ratio of two sides in a row, which its largest or its smallest rectangle has.
function ratio(most, least, row, side, scale) {
  const area = row * scale;
  const square = (side * side) / (area * area);
  return Math.max(square * most * scale, 1 / (square * least * scale));
}

const HEAD = 17;
const BORDER = 2;

// The rectangles of a directory and of everything below it that has an area, outer ones first. A
// cell has no rectangles in it: a file, a directory that is too small, or the rest of a directory.
function layOut(dir, width, height, areaOf) {
  const found = [];
  const fill = (node, x, y, w, h, depth, top) => {
    const items = children(node).map((child) => ({ node: child, weight: areaOf(sum(child)) }));
    const more = rest(node);
    if (more[2] > 0) items.push({ node, more, weight: areaOf(more) });
    const wanted = items.filter((item) => item.weight > 0).sort((a, b) => b.weight - a.weight);
    squarify(wanted, x, y, w, h, (item, left, upper, across, down) => {
      if (across < 1 || down < 1) return;
      const isRest = item.more !== undefined;
      const first = top ?? { node: item.node, isRest };
      const rect = { node: item.node, isRest, x: left, y: upper, w: across, h: down, depth, first, head: 0, isCell: true };
      found.push(rect);
      if (isRest || !isDir(item.node)) return;
      rect.head = across > 44 && down > 34 ? HEAD : 0;
      const [innerW, innerH] = [across - 2 * BORDER, down - 2 * BORDER - rect.head];
      if (innerW < 5 || innerH < 5 || innerW * innerH < 60) { rect.head = 0; return; }
      rect.isCell = false;
      fill(item.node, left + BORDER, upper + BORDER + rect.head, innerW, innerH, depth + 1, first);
    });
  };
  fill(dir, 0, 0, width, height, 0, null);
  return found;
}

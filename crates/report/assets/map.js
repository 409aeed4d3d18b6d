// The map: two canvases, one with the rectangles and one above it with the outlines of what is
// selected. Owns drawing, the pointer and the keys; what happens to a directory or a path is up to
// the caller.

const FONT = '11.5px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
const ZOOM_MS = 200;

class TreeMap {
  // `on` has the calls open(dir), up(), copy(rect), select(rect), and tell() when a key has selected.
  constructor(frame, base, over, on) {
    Object.assign(this, { frame, base, over, on, rects: [], selected: null, dir: TOP, only: new Set() });
    this.dirty = false;
    new ResizeObserver(() => this.refresh()).observe(frame);
    over.addEventListener("pointermove", (event) => this.hover(event));
    over.addEventListener("pointerleave", () => {
      // A page that scrolls below a resting pointer must not clear what keys have selected.
      if (!over.matches(":focus-visible")) this.select(null, null);
    });
    over.addEventListener("click", (event) => this.click(event));
    over.addEventListener("keydown", (event) => this.key(event));
    over.addEventListener("focus", () => this.focused());
  }

  // Shows a directory. The way of colouring and the measure of areas stay unless they are given.
  // Of the classes, only those in `only` are coloured; all of them if it is empty.
  show(dir, colours, area, only) {
    const from = this.rects.find((rect) => rect.node === dir && !rect.isRest);
    const old = from && dir !== this.dir ? this.picture(from) : null;
    Object.assign(this, { dir, colours: colours ?? this.colours, area: area ?? this.area, only: only ?? this.only, selected: null });
    this.lay();
    if (old) this.zoom(old, from);
  }

  refresh() {
    if (!this.dirty) {
      this.dirty = true;
      requestAnimationFrame(() => { this.dirty = false; this.lay(); });
    }
  }

  lay() {
    if (!this.colours) return;
    const ratio = window.devicePixelRatio || 1;
    [this.width, this.height] = [this.frame.clientWidth, this.frame.clientHeight];
    for (const canvas of [this.base, this.over]) {
      [canvas.width, canvas.height] = [Math.round(this.width * ratio), Math.round(this.height * ratio)];
      canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    this.rects = layOut(this.dir, this.width, this.height, this.area.of);
    this.draw();
    this.outline();
  }

  draw() {
    const pen = this.base.getContext("2d");
    const colours = palette(this.colours);
    const [gap, frameText, dim, dimText, ...frames] = ["--gap", "--frame-text", "--track", "--soft", "--frame-0", "--frame-1"].map(variable);
    pen.fillStyle = gap;
    pen.fillRect(0, 0, this.width, this.height);
    pen.font = FONT;
    pen.textBaseline = "middle";
    for (const rect of this.rects) {
      if (!rect.isCell) {
        this.fill(pen, rect, frames[rect.depth % 2], 3);
        if (rect.head > 0) this.headLabel(pen, rect, frameText);
        continue;
      }
      const place = this.colours.classOf(rect);
      const isOff = this.only.size > 0 && !this.only.has(place);
      const { colour, text } = isOff ? { colour: dim, text: dimText } : colours.get(place);
      this.fill(pen, rect, colour, 2);
      if (rect.isRest) this.hatch(pen, rect, gap);
      if (rect.w > 46 && rect.h > 17) this.cellLabel(pen, rect, text);
    }
  }

  fill(pen, rect, colour, radius) {
    pen.fillStyle = colour;
    if (rect.w < 8 || rect.h < 8) {
      pen.fillRect(rect.x + 0.25, rect.y + 0.25, Math.max(rect.w - 0.5, 0.5), Math.max(rect.h - 0.5, 0.5));
      return;
    }
    pen.beginPath();
    pen.roundRect(rect.x + 0.5, rect.y + 0.5, rect.w - 1, rect.h - 1, radius);
    pen.fill();
  }

  // Lines across the rest of a directory: it is many entries, not one.
  hatch(pen, rect, colour) {
    if (rect.w < 6 || rect.h < 6) return;
    pen.save();
    pen.beginPath();
    pen.rect(rect.x + 1, rect.y + 1, rect.w - 2, rect.h - 2);
    pen.clip();
    pen.strokeStyle = colour;
    pen.globalAlpha = 0.35;
    pen.lineWidth = 1.5;
    pen.beginPath();
    for (let at = -rect.h; at < rect.w; at += 7) {
      pen.moveTo(rect.x + at, rect.y + rect.h);
      pen.lineTo(rect.x + at + rect.h, rect.y);
    }
    pen.stroke();
    pen.restore();
  }

  headLabel(pen, rect, colour) {
    const [x, y, width] = [rect.x + 6, rect.y + BORDER + HEAD / 2, rect.w - 12];
    const name = shown(NODES.name[rect.node]);
    this.label(pen, name, x, y, width, colour);
    const taken = pen.measureText(name).width + 8;
    const size = this.area.text(sum(rect.node));
    if (taken + pen.measureText(size).width > width) return;
    pen.globalAlpha = 0.65;
    this.label(pen, size, x + taken, y, width - taken, colour);
    pen.globalAlpha = 1;
  }

  cellLabel(pen, rect, colour) {
    const title = rect.isRest ? `${count(rest(rect.node)[2])} more` : shown(NODES.name[rect.node]);
    const isTall = rect.h > 34;
    this.label(pen, title, rect.x + 6, rect.y + (isTall ? 12 : Math.min(rect.h / 2, 12)), rect.w - 12, colour);
    if (isTall) {
      pen.globalAlpha = 0.75;
      this.label(pen, this.area.text(rect.isRest ? rest(rect.node) : sum(rect.node)), rect.x + 6, rect.y + 27, rect.w - 12, colour);
      pen.globalAlpha = 1;
    }
  }

  // Draws the beginning of a text that fits. The longest names take 255 characters.
  label(pen, text, x, y, width, colour) {
    pen.fillStyle = colour;
    const all = pen.measureText(text).width;
    if (all <= width) { pen.fillText(text, x, y); return; }
    let end = Math.floor((text.length * width) / all);
    while (end > 0 && pen.measureText(`${text.slice(0, end)}…`).width > width) end -= 1;
    if (end > 1) pen.fillText(`${text.slice(0, end)}…`, x, y);
  }

  outline() {
    const pen = this.over.getContext("2d");
    pen.clearRect(0, 0, this.width, this.height);
    const rect = this.selected;
    if (!rect) return;
    const outer = this.rects.find((other) => other.depth === 0 && other.node === rect.first.node && other.isRest === rect.first.isRest);
    for (const [shape, width, alpha] of [[outer, 1.5, 0.55], [rect, 2.5, 1]]) {
      if (!shape) continue;
      pen.globalAlpha = alpha;
      pen.strokeStyle = variable("--outline");
      pen.lineWidth = width;
      pen.beginPath();
      pen.roundRect(shape.x + 1, shape.y + 1, Math.max(shape.w - 2, 1), Math.max(shape.h - 2, 1), 3);
      pen.stroke();
    }
  }

  // Returns the innermost rectangle at a place.
  at(x, y) {
    return this.rects.findLast((rect) => x >= rect.x && x < rect.x + rect.w && y >= rect.y && y < rect.y + rect.h) ?? null;
  }

  hover(event) {
    const box = this.over.getBoundingClientRect();
    this.select(this.at(event.clientX - box.left, event.clientY - box.top), event);
  }

  select(rect, event) {
    if (rect !== this.selected) {
      this.selected = rect;
      this.outline();
    }
    this.on.select(rect, event);
  }

  // Selects the rectangle of an entry of the directory, from the table.
  selectNode(node, isRest) {
    this.select(this.rects.find((rect) => rect.depth === 0 && rect.node === node && rect.isRest === isRest) ?? null, null);
  }

  // Opens the directory below the pointer that is nearest to the one shown, or with a header the
  // directory itself; selects a file and copies its path.
  click(event) {
    this.hover(event);
    const rect = this.selected;
    if (!rect) return;
    const inHead = !rect.isCell && rect.head > 0;
    const node = inHead ? rect.node : rect.first.node;
    this.act(inHead ? rect : this.rects.find((other) => other.depth === 0 && other.node === node && other.isRest === rect.first.isRest));
  }

  act(rect) {
    if (!rect) return;
    if (rect.isRest) this.on.more(rect);
    else if (isDir(rect.node)) this.on.open(rect.node);
    else this.on.copy(rect);
  }

  focused() {
    if (!this.over.matches(":focus-visible") || this.selected) return;
    this.select(this.rects.find((rect) => rect.depth === 0) ?? null, null);
  }

  key(event) {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (moves[event.key]) {
      this.move(...moves[event.key]);
      this.on.tell();
    }
    else if (event.key === "Enter" || event.key === " ") this.act(this.topOf(this.selected));
    else if (event.key === "Escape" || event.key === "Backspace") this.on.up();
    else if (event.key === "c" && this.selected) this.on.copy(this.selected);
    else return;
    event.preventDefault();
  }

  // Returns the entry of the directory shown that a rectangle is in.
  topOf(rect) {
    return rect && this.rects.find((other) => other.depth === 0 && other.node === rect.first.node && other.isRest === rect.first.isRest);
  }

  // Selects the nearest entry of the directory in a direction.
  move(dx, dy) {
    const from = this.topOf(this.selected);
    const tops = this.rects.filter((rect) => rect.depth === 0);
    if (!from) { this.select(tops[0] ?? null, null); return; }
    const middle = (rect) => [rect.x + rect.w / 2, rect.y + rect.h / 2];
    const [x, y] = middle(from);
    let [best, least] = [null, Infinity];
    for (const rect of tops) {
      const [toX, toY] = middle(rect);
      const along = (toX - x) * dx + (toY - y) * dy;
      const edge = dx ? (dx > 0 ? rect.x - from.x - from.w : from.x - rect.x - rect.w) : (dy > 0 ? rect.y - from.y - from.h : from.y - rect.y - rect.h);
      if (rect === from || along <= 0 || edge < -1) continue;
      const aside = dx ? gapBetween(y, rect.y, rect.h) : gapBetween(x, rect.x, rect.w);
      const cost = Math.max(edge, 0) + 2 * aside + along / 1000;
      if (cost < least) [best, least] = [rect, cost];
    }
    if (best) this.select(best, null);
  }

  picture(rect) {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches || rect.w < 2 || rect.h < 2) return null;
    const copy = document.createElement("canvas");
    [copy.width, copy.height] = [this.base.width, this.base.height];
    copy.getContext("2d").drawImage(this.base, 0, 0);
    return copy;
  }

  // Fades from the old picture, of which `rect` becomes the whole, to the new one.
  zoom(old, rect) {
    const fresh = document.createElement("canvas");
    [fresh.width, fresh.height] = [this.base.width, this.base.height];
    fresh.getContext("2d").drawImage(this.base, 0, 0);
    const [pen, began, dir] = [this.base.getContext("2d"), performance.now(), this.dir];
    const ratio = this.base.width / this.width;
    const frame = (now) => {
      const part = Math.min(Math.max((now - began) / ZOOM_MS, 0), 1);
      if (this.dir !== dir || fresh.width !== this.base.width || fresh.height !== this.base.height) return;
      if (part === 1) { this.draw(); return; }
      const ease = 1 - (1 - part) ** 3;
      const mix = (from, to) => from + (to - from) * ease;
      const [x, y] = [mix(0, rect.x), mix(0, rect.y)];
      const [w, h] = [mix(this.width, rect.w), mix(this.height, rect.h)];
      pen.globalAlpha = 1;
      pen.drawImage(old, x * ratio, y * ratio, w * ratio, h * ratio, 0, 0, this.width, this.height);
      pen.globalAlpha = ease;
      pen.drawImage(fresh, 0, 0, this.width, this.height);
      pen.globalAlpha = 1;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }
}

// The distance of a place from a range.
function gapBetween(place, start, length) {
  return Math.max(start - place, place - start - length, 0);
}

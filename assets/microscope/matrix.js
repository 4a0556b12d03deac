// One drawn matrix: a table of numbers while they fit, else a picture of colours. Both answer the
// same questions: cell under the pointer, mark these cells, move the focus.

import { element, fill, symbolNode, write, writer } from "./format.js";
import { hue } from "./colour.js";

export const MOST_COLUMNS = 20;
export const MOST_ROWS = 24;

/**
 * Draw a face. `look`: {palette, text, labels, dims, width, ratio, tint, role}.
 * -> {box, face, mode, at(event), node(r, c), mark(cells, kind), clear(), focus(r, c)}
 */
export function draw(face, look) {
  const cells = face.cols <= MOST_COLUMNS && face.rows <= MOST_ROWS && !face.pooled;
  const grid = cells ? new Table(face, look) : new Picture(face, look);
  const name = fill(look.text.matrix, {
    symbol: face.symbol + (face.transpose ? "ᵀ" : ""),
    rows: face.sizes[0],
    cols: face.sizes[1],
  });
  grid.grid.setAttribute("aria-label", name);
  grid.scroll = element("div", { class: "scroll" }, grid.body);
  grid.box = element(
    "div",
    {
      class: `matrix ${grid.mode}`,
      "data-matrix": face.symbol,
      "data-rows": face.rows,
      "data-cols": face.cols,
      "data-mode": grid.mode,
      "data-transposed": face.transpose ? "true" : null,
    },
    title(face, look),
    grid.scroll,
    legend(face, look),
  );
  return grid;
}

// Q  S×d_k  4×3
function title(face, { palette, dims }) {
  const symbol = symbolNode(face.symbol);
  if (face.transpose) symbol.append(element("sup", { text: "T" }));
  const node = element("div", { class: "title" }, symbol);
  const names = element("span", { class: "dims" });
  [face.rowAxes, face.colAxes].forEach((axes, side) => {
    if (side && face.rowAxes.length) names.append("×");
    axes.forEach((axis, place) => {
      if (place) names.append("·");
      names.append(...dimNodes(face.step.dims[axis], dims, palette));
    });
  });
  const sizes = face.rowAxes.length ? face.sizes.join("×") : String(face.sizes[1]);
  node.append(names, element("span", { class: "sizes", text: sizes }));
  return node;
}

function dimNodes(dim, dims, palette) {
  return dim.split(/([·*])/).map((part) => {
    if (/^[·*]$/.test(part)) return "·";
    const known = dims?.[part];
    const node = symbolNode(part, "dim");
    if (known?.colour) node.style.color = palette.text(known.colour);
    if (known?.name) node.title = `${part}: ${known.name}`;
    return node;
  });
}

function legend(face, { palette, text }) {
  const { kind, max } = face.step.range;
  const bar = element("span", { class: "bar" });
  bar.style.background = palette.gradient(kind);
  const [low, high] = kind === "unit" ? ["0", "1"] : [write(-max, 3), write(max, 3)];
  const node = element("div", { class: "legend", role: "img", "aria-label": fill(text.scale, { low, high }) });
  node.append(element("span", { text: low }), bar, element("span", { text: high }));
  return node;
}

/** What stands beside a row or above a column: the token if there is one, else "d_k 1". */
function label(face, axes, i, labels) {
  return face
    .names(axes, i)
    .map(([dim, at]) => tokenOf(face, labels, dim, at) ?? `${dim} ${at + 1}`)
    .join(" · ");
}

// Tokens are listed per dim, and where the samples of a batch differ, per sample.
function tokenOf({ still, step }, labels, dim, at) {
  const names = labels?.[dim];
  if (!Array.isArray(names?.[0])) return names?.[at];
  return names[still.get(step.dims.indexOf("B")) ?? 0]?.[at];
}

function headers(face, axes, count, look, scope) {
  return Array.from({ length: count }, (_, i) => {
    const names = face.names(axes, i);
    const head = element("th", { scope, title: label(face, axes, i, look.labels) });
    const inner = element("span", { class: "label" });
    names.forEach(([dim, at], place) => {
      const token = tokenOf(face, look.labels, dim, at);
      if (place) inner.append("·");
      if (token !== undefined) inner.append(element("span", { class: "token", text: token }));
      else {
        // With several dims in one label the last one's name goes without saying.
        if (names.length === 1 || place < names.length - 1) {
          inner.append(...dimNodes(dim, look.dims, look.palette), "\u200a");
        }
        inner.append(String(at + 1));
      }
    });
    head.append(inner);
    if (startsBlock(names)) head.classList.add("block");
    return head;
  });
}

// The first of a head's rows or columns, where a rule is drawn.
const startsBlock = (names) => names.length > 1 && names[0][1] > 0 && names.slice(1).every(([, at]) => at === 0);

/** The hue of the head that a cell belongs to, or null. */
function tintOf(face, row, col, { tint, palette }) {
  if (!tint) return null;
  const names = [...face.names(face.rowAxes, row), ...face.names(face.colAxes, col)];
  const found = names.find(([dim]) => dim === tint) ?? names.find(([dim]) => tint === "h" && dim === "g");
  return found ? hue(found[1], palette.dark) : null;
}

/** What cells and pictures have in common: which cell holds the focus, which cells are marked. */
class Grid {
  constructor(face, look) {
    Object.assign(this, { face, look, marked: [], rove: [0, 0] });
  }

  inside(row, col) {
    return row >= 0 && col >= 0 && row < this.face.rows && col < this.face.cols;
  }

  /** The tokens of a cell's row and column, where a picture has no room to show them. */
  get tokened() {
    return this.mode === "heatmap" && Object.keys(this.look.labels ?? {}).length > 0;
  }

  tokens(row, col) {
    const { face, look } = this;
    const names = [label(face, face.rowAxes, row, look.labels), label(face, face.colAxes, col, look.labels)];
    return names.join(" · ");
  }

  /** Where an arrow key leads from a cell. */
  next([row, col], key) {
    const { rows, cols } = this.face;
    const [r, c] = {
      ArrowLeft: [row, col - 1],
      ArrowRight: [row, col + 1],
      ArrowUp: [row - 1, col],
      ArrowDown: [row + 1, col],
      Home: [row, 0],
      End: [row, cols - 1],
    }[key];
    return [Math.min(rows - 1, Math.max(0, r)), Math.min(cols - 1, Math.max(0, c))];
  }
}

class Table extends Grid {
  mode = "cells";

  constructor(face, look) {
    super(face, look);
    const values = [];
    for (let r = 0; r < face.rows; r += 1) {
      for (let c = 0; c < face.cols; c += 1) values.push(face.value(r, c));
    }
    const say = writer(values.filter((x) => x !== undefined));
    this.cells = values.map((value, at) => this.cell(value, at, say));
    const longest = Math.max(...this.cells.map((cell) => cell.textContent.length), 4);
    this.grid = this.body = element("table", { role: "grid" });
    this.grid.style.setProperty("--chars", longest);
    if (face.rows > 12 || face.cols > 10) this.grid.classList.add("dense");
    this.grid.append(this.head(), this.rows());
    this.cells[0]?.setAttribute("tabindex", "0");
  }

  cell(value, at, say) {
    const { face, look } = this;
    const [row, col] = [Math.floor(at / face.cols), at % face.cols];
    const shown = face.step.display ? face.display(face.index(row, col)) : undefined;
    const cell = element("td", {
      role: "gridcell",
      tabindex: "-1",
      text: shown ?? (value === undefined ? "·" : say(value)),
      "data-cell": `${row},${col}`,
      "data-value": value === undefined ? null : String(value),
      title: value === undefined ? null : String(value).replaceAll("-", "−").replace("Infinity", "∞"),
    });
    const colour = look.palette.of(value, face.step.range);
    if (colour) {
      cell.style.backgroundColor = colour.ground;
      cell.style.color = colour.ink;
    }
    if (value === -Infinity) cell.classList.add("hatched");
    if (Number.isNaN(value)) cell.classList.add("nan");
    const tint = tintOf(face, row, col, look);
    if (tint) {
      cell.classList.add("tinted");
      cell.style.setProperty("--tint", tint);
    }
    return cell;
  }

  head() {
    const { face, look } = this;
    const row = element("tr", {}, element("td", { class: "corner" }));
    this.colHeads = headers(face, face.colAxes, face.cols, look, "col");
    row.append(...this.colHeads);
    return element("thead", {}, row);
  }

  rows() {
    const { face, look } = this;
    const body = element("tbody");
    this.rowHeads = headers(face, face.rowAxes, face.rows, look, "row");
    this.rowHeads.forEach((head, r) => {
      const row = element("tr", {}, head, ...this.cells.slice(r * face.cols, (r + 1) * face.cols));
      if (head.classList.contains("block")) row.classList.add("block");
      body.append(row);
    });
    this.colHeads.forEach((head, c) => {
      if (!head.classList.contains("block")) return;
      for (let r = 0; r < face.rows; r += 1) this.node(r, c).classList.add("block");
    });
    return body;
  }

  node(row, col) {
    return this.cells[row * this.face.cols + col];
  }

  at(event) {
    const cell = event.target.closest?.("[data-cell]");
    return cell ? cell.dataset.cell.split(",").map(Number) : null;
  }

  mark(cells, kind) {
    for (const [row, col] of cells) {
      for (const node of [this.node(row, col), this.rowHeads[row], this.colHeads[col]]) {
        const kinds = kind.split(" ");
        node.classList.add(...kinds);
        this.marked.push([node, kinds]);
      }
    }
  }

  clear() {
    for (const [node, kinds] of this.marked) node.classList.remove(...kinds);
    this.marked.length = 0;
  }

  pin(cell) {
    this.pinned?.removeAttribute("aria-selected");
    this.pinned?.classList.remove("pinned");
    this.pinned = cell && this.node(...cell);
    this.pinned?.setAttribute("aria-selected", "true");
    this.pinned?.classList.add("pinned");
  }

  settle(row, col) {
    this.node(...this.rove).setAttribute("tabindex", "-1");
    this.rove = [row, col];
    this.node(row, col).setAttribute("tabindex", "0");
  }

  focus(row, col) {
    this.settle(row, col);
    this.node(row, col).focus({ preventScroll: false });
  }
}

class Picture extends Grid {
  mode = "heatmap";

  constructor(face, look) {
    super(face, look);
    const [width, height] = this.measure();
    this.canvas = element("canvas", { width: face.cols, height: face.rows, "aria-hidden": "true" });
    this.paint();
    this.marks = element("div", { class: "marks" });
    this.cursor = element("div", {
      role: "gridcell",
      tabindex: "0",
      class: "cursor",
      "aria-selected": "false",
    });
    const row = element("div", { role: "row" }, this.cursor);
    this.grid = element(
      "div",
      { class: "picture", role: "grid", "aria-rowcount": face.rows, "aria-colcount": face.cols },
      this.canvas,
      this.marks,
      row,
    );
    this.grid.style.width = `${width}px`;
    this.grid.style.height = `${height}px`;
    this.row = row;
    this.body = this.grid;
    this.settle(0, 0);
  }

  // Each cell takes a whole number of device pixels, so that its edges stay sharp.
  measure() {
    const { face, look } = this;
    const side = Math.max(face.rows, face.cols);
    const most = Math.floor(14 * look.ratio);
    const each = Math.max(1, Math.min(most, Math.floor((look.side * look.ratio) / side)));
    return [(face.cols * each) / look.ratio, (face.rows * each) / look.ratio];
  }

  paint() {
    const { face, look } = this;
    const context = this.canvas.getContext("2d");
    const image = context.createImageData(face.cols, face.rows);
    const pixels = new Uint32Array(image.data.buffer);
    let place = 0;
    for (let r = 0; r < face.rows; r += 1) {
      for (let c = 0; c < face.cols; c += 1, place += 1) {
        // −∞ stays transparent: the hatched ground shows through.
        pixels[place] = look.palette.of(face.value(r, c), face.step.range)?.packed ?? 0;
      }
    }
    context.putImageData(image, 0, 0);
  }

  at(event) {
    if (event.target === this.cursor) return this.rove;
    if (event.target !== this.canvas) return null;
    // A click comes with rounded coordinates: what was pointed at is what was clicked.
    if (event.type === "click" && this.pointed) return this.pointed;
    const { rows, cols } = this.face;
    const row = Math.floor((event.offsetY / this.canvas.clientHeight) * rows);
    const col = Math.floor((event.offsetX / this.canvas.clientWidth) * cols);
    this.pointed = this.inside(row, col) ? [row, col] : null;
    return this.pointed;
  }

  // The smallest rectangle around the cells: a row, a column or a single cell.
  mark(cells, kind) {
    if (!cells.length) return;
    const rows = cells.map(([r]) => r);
    const cols = cells.map(([, c]) => c);
    const [top, left] = [Math.min(...rows), Math.min(...cols)];
    this.frame(kind, top, left, Math.max(...rows) + 1 - top, Math.max(...cols) + 1 - left);
  }

  frame(kind, top, left, height, width) {
    const mark = element("div", { class: `mark ${kind}` });
    this.position(mark, top, left, height, width);
    this.marks.append(mark);
    return mark;
  }

  position(node, top, left, height = 1, width = 1) {
    const { rows, cols } = this.face;
    const share = (part, whole) => `${(100 * part) / whole}%`;
    node.style.top = share(top, rows);
    node.style.left = share(left, cols);
    node.style.height = share(height, rows);
    node.style.width = share(width, cols);
  }

  clear() {
    this.marks.replaceChildren(...(this.pinned ? [this.pinned] : []));
  }

  pin(cell) {
    this.pinned?.remove();
    this.pinned = cell && this.frame("pinned", ...cell, 1, 1);
    this.cursor.setAttribute("aria-selected", String(Boolean(cell)));
  }

  node() {
    return this.cursor;
  }

  settle(row, col) {
    const { face, cursor } = this;
    this.rove = [row, col];
    const value = face.value(row, col);
    cursor.dataset.cell = `${row},${col}`;
    cursor.dataset.value = String(value);
    cursor.setAttribute("aria-label", `${this.tokens(row, col)}: ${write(value)}`);
    cursor.setAttribute("aria-colindex", col + 1);
    this.row.setAttribute("aria-rowindex", row + 1);
    this.position(cursor, row, col);
  }

  focus(row, col) {
    this.settle(row, col);
    this.cursor.focus();
  }
}

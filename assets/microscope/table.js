// A matrix as a table of numbers on their colours.

import { hue } from "./colour.js";
import { element, writer } from "./format.js";
import { Grid, dimNodes, label, tokenOf } from "./grid.js";

export class Table extends Grid {
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
function startsBlock([first, ...rest]) {
  return rest.length > 0 && first[1] > 0 && rest.every(([, at]) => at === 0);
}

/** The hue of the head that a cell belongs to, or null. */
function tintOf(face, row, col, { tint, palette }) {
  if (!tint) return null;
  const names = [...face.names(face.rowAxes, row), ...face.names(face.colAxes, col)];
  const found = names.find(([dim]) => dim === tint) ?? names.find(([dim]) => tint === "h" && dim === "g");
  return found ? hue(found[1], palette.dark) : null;
}

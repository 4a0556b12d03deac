// A matrix as a picture: one pixel per cell, enlarged by whole device pixels. The cell in focus is a
// real grid cell laid over it, so that a screen reader can walk the picture too.

import { element, write } from "./format.js";
import { Grid } from "./grid.js";

export class Picture extends Grid {
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

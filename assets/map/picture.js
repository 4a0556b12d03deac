// A picture of a part of the map: one byte per tile, drawn at its place under any view.
//
// Level 0 is a weight of exactly 0 and stays transparent; 1 … 255 are on the colour scale. Where a
// tile is smaller than a pixel the largest of those that share one is drawn, so none is lost.

const LEVELS = 255;

export class Picture {
  /** `about`: {rect, block, shape, scale, coarse}; `levels`: one byte per tile. */
  constructor(about, levels, palette) {
    Object.assign(this, about);
    this.levels = levels;
    this.colours = palette.scales.unit.map(({ packed }) => packed);
    this.sizes = []; // canvases: as it came, halved, halved again …
  }

  /** The level at a cell of the map, or undefined outside. */
  at(i, j) {
    const r = Math.floor((i - this.rect[0]) / this.block[0]);
    const c = Math.floor((j - this.rect[1]) / this.block[1]);
    const [rows, cols] = this.shape;
    return r >= 0 && c >= 0 && r < rows && c < cols ? this.levels[r * cols + c] : undefined;
  }

  /** The tile that holds a cell: [i, j, rows, cols], cut at the end of the picture. */
  tile(i, j) {
    const along = (at, axis) => {
      const [from, size] = [this.rect[axis], this.block[axis]];
      const start = from + Math.floor((at - from) / size) * size;
      return [start, Math.min(size, from + this.rect[axis + 2] - start)];
    };
    const [top, rows] = along(i, 0);
    const [left, cols] = along(j, 1);
    return [top, left, rows, cols];
  }

  /** The weight that a level stands for, to its colour's precision. */
  weight(level) {
    const { kind, low, high } = this.scale;
    if (!level) return 0;
    const share = (level - 1) / (LEVELS - 1);
    return kind === "log" ? low * (high / low) ** share : low + (high - low) * share;
  }

  draw(context, view, box) {
    const [rows, cols] = this.shape;
    const [perRow, perCol] = [box.height / view.rows, box.width / view.cols];
    const half = Math.max(0, Math.ceil(Math.log2(1 / Math.min(perRow * this.block[0], perCol * this.block[1]) - 1e-6)));
    const { canvas, step } = this.size(half);
    const [high, wide] = this.block.map((n) => n * step);
    // Only the tiles on screen, each at its own whole place.
    const first = (from, start, size) => Math.max(0, Math.floor((from - start) / size));
    const last = (to, start, size, count) => Math.min(Math.ceil(count / step), Math.ceil((to - start) / size));
    const [r0, r1] = [first(view.i, this.rect[0], high), last(view.i + view.rows, this.rect[0], high, rows)];
    const [c0, c1] = [first(view.j, this.rect[1], wide), last(view.j + view.cols, this.rect[1], wide, cols)];
    if (r1 <= r0 || c1 <= c0) return;
    const x = (column) => box.x + (this.rect[1] + column * wide - view.j) * perCol;
    const y = (row) => box.y + (this.rect[0] + row * high - view.i) * perRow;
    context.imageSmoothingEnabled = false;
    context.drawImage(canvas, c0, r0, c1 - c0, r1 - r0, x(c0), y(r0), x(c1) - x(c0), y(r1) - y(r0));
  }

  size(half) {
    while (this.sizes.length <= half) {
      const last = this.sizes.at(-1);
      const made = last ? halved(last) : { levels: this.levels, rows: this.shape[0], cols: this.shape[1], step: 1 };
      made.canvas = this.paint(made);
      this.sizes.push(made);
    }
    return this.sizes[half];
  }

  // A last tile that is cut short may be thinner than a pixel: the one before it shows it as well.
  closed({ levels, rows, cols, step }) {
    const short = ([count, axis]) => {
      const size = this.block[axis] * step;
      return count > 1 && size > 1 && this.rect[axis + 2] - (count - 1) * size < size;
    };
    const [down, across] = [short([rows, 0]), short([cols, 1])];
    if (!down && !across) return levels;
    const out = levels.slice();
    const raise = (to, from) => (out[to] = Math.max(out[to], out[from]));
    for (let c = 0; down && c < cols; c += 1) raise((rows - 2) * cols + c, (rows - 1) * cols + c);
    for (let r = 0; across && r < rows; r += 1) raise(r * cols + cols - 2, r * cols + cols - 1);
    return out;
  }

  paint(size) {
    const { rows, cols } = size;
    const levels = this.closed(size);
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [cols, rows];
    const context = canvas.getContext("2d");
    const image = context.createImageData(cols, rows);
    const pixels = new Uint32Array(image.data.buffer);
    for (let at = 0; at < pixels.length; at += 1) {
      if (levels[at]) pixels[at] = this.colours[levels[at] - 1];
    }
    context.putImageData(image, 0, 0);
    return canvas;
  }
}

// Half as many rows and columns, each the largest of four.
function halved({ levels, rows, cols, step }) {
  const [high, wide] = [Math.ceil(rows / 2), Math.ceil(cols / 2)];
  const out = new Uint8Array(high * wide);
  for (let r = 0; r < rows; r += 1) {
    const to = (r >> 1) * wide;
    for (let c = 0; c < cols; c += 1) {
      const level = levels[r * cols + c];
      if (level > out[to + (c >> 1)]) out[to + (c >> 1)] = level;
    }
  }
  return { levels: out, rows: high, cols: wide, step: step * 2 };
}

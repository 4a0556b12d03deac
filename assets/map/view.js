// The rectangle of the map that is on screen: rows i … i+rows, columns j … j+cols, in cells, with
// fractions. Nothing here knows a canvas.

const LEAST = 8; // cells across at the deepest zoom

export class View {
  constructor(S, T) {
    Object.assign(this, { S, T });
    this.whole();
  }

  whole() {
    return this.set([0, 0, this.S, this.T]);
  }

  get isWhole() {
    return this.rows >= this.S && this.cols >= this.T;
  }

  /** Show a rectangle [i, j, rows, cols], kept inside the map. */
  set([i, j, rows, cols]) {
    const size = (wanted, all) => Math.min(all, Math.max(Math.min(LEAST, all), wanted));
    this.rows = size(rows, this.S);
    this.cols = size(cols, this.T);
    this.i = Math.min(this.S - this.rows, Math.max(0, i));
    this.j = Math.min(this.T - this.cols, Math.max(0, j));
    return this;
  }

  /** Zoom in (factor > 1) or out around the point at the shares (x, y) of the screen. */
  zoom(factor, x = 0.5, y = 0.5) {
    const [rows, cols] = [this.rows, this.cols].map((n) => n / factor);
    const kept = new View(this.S, this.T).set([0, 0, rows, cols]);
    const row = this.i + y * this.rows;
    const col = this.j + x * this.cols;
    return this.set([row - y * kept.rows, col - x * kept.cols, rows, cols]);
  }

  /** Move by cells. */
  pan(rows, cols) {
    return this.set([this.i + rows, this.j + cols, this.rows, this.cols]);
  }

  /** Put a cell in the middle; `near` cells across where that is closer than now. */
  centre([i, j], near = Infinity) {
    const rows = Math.min(near, this.rows);
    const cols = Math.min(near, this.cols);
    return this.set([i + 0.5 - rows / 2, j + 0.5 - cols / 2, rows, cols]);
  }

  shows([i, j]) {
    return i >= this.i && i < this.i + this.rows && j >= this.j && j < this.j + this.cols;
  }

  /** The whole cells that are at least partly on screen: [i, j, rows, cols]. */
  get cells() {
    const [i, j] = [Math.floor(this.i + 1e-6), Math.floor(this.j + 1e-6)];
    const end = (from, size, all) => Math.min(all, Math.ceil(from + size - 1e-6));
    return [i, j, end(this.i, this.rows, this.S) - i, end(this.j, this.cols, this.T) - j];
  }
}

/** Round numbers, at least `room` cells apart: the step between the marks of a ruler. */
export function roundStep(least) {
  if (least <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= least - 1e-9);
}

// The trace in the browser: steps, their tensors over one flat array, and how a tensor is drawn.

/** "h·d_k" -> ["h", "d_k"]: an axis may be several dims side by side. */
export const atoms = (dim) => dim.split(/[·*]/);

/** Position along several axes, counted row by row: unravel(5, [2, 3]) -> [1, 2]. */
export function unravel(flat, sizes) {
  const index = new Array(sizes.length);
  for (let axis = sizes.length - 1; axis >= 0; axis -= 1) {
    index[axis] = flat % sizes[axis];
    flat = Math.floor(flat / sizes[axis]);
  }
  return index;
}

export const ravel = (index, sizes) => index.reduce((flat, i, axis) => flat * sizes[axis] + i, 0);
const product = (numbers) => numbers.reduce((a, b) => a * b, 1);

export class Trace {
  constructor(manifest, values) {
    this.manifest = manifest;
    this.values = values;
    this.steps = manifest.steps;
    this.places = new Map(this.steps.map((step, place) => [step.symbol, place]));
    this.sizes = sizesOf(this.steps);
    // Is every head and every batch item here, or only the slice that was asked for?
    this.whole = manifest.whole ?? this.steps.every(({ tensor }) => tensor.strides && !tensor.fixed);
  }

  step(symbol) {
    return this.steps[this.places.get(symbol)];
  }

  /** The number at a full index; undefined where it was not sent. */
  at(step, index) {
    const { offset, strides, fixed } = step.tensor;
    if (!strides) return undefined; // pooled
    let place = offset;
    for (let axis = 0; axis < index.length; axis += 1) {
      const only = fixed?.[step.dims[axis]];
      if (only !== undefined && step.shape[axis] > 1 && index[axis] !== only) return undefined;
      place += index[axis] * strides[axis];
    }
    return this.values[place];
  }

  /** Where in the array an element stands: two tensors with the same place share memory. */
  place(step, index) {
    const { offset, strides } = step.tensor;
    return strides && offset + index.reduce((sum, i, axis) => sum + i * strides[axis], 0);
  }

  /** The position along each dim of an axis: column 4 of "h·d_k" with d_k = 3 -> {h: 1, d_k: 1}. */
  position(dim, length, i) {
    const names = atoms(dim);
    if (names.length === 1) return { [dim]: i };
    const sizes = names.map((name) => this.sizes[name]);
    const unknown = sizes.indexOf(undefined);
    if (unknown >= 0) sizes[unknown] = length / product(sizes.filter((size) => size));
    const parts = unravel(i, sizes);
    return Object.fromEntries(names.map((name, at) => [name, parts[at]]));
  }
}

function sizesOf(steps) {
  const sizes = {};
  for (const { op } of steps) Object.assign(sizes, op.kind === "gather" ? op.sizes : {});
  for (const { dims, shape } of steps) {
    dims.forEach((dim, axis) => {
      if (atoms(dim).length === 1 && shape[axis] > 1) sizes[dim] = shape[axis];
    });
  }
  return sizes;
}

/**
 * A tensor as a matrix: which axes run down, which across, and where the others stand still.
 *
 * Batch and head stand at the picked one; (S, h, d) lies flat as S × h·d. `unfold` lays all heads
 * of (h, S, d) below each other.
 */
export class Face {
  constructor(trace, step, pick, { transpose = false, unfold = false } = {}) {
    Object.assign(this, { trace, step, transpose, symbol: step.symbol });
    const { shape, dims, tensor } = step;
    const { pick: lead, rows, cols } = step.layout ?? layoutOf(dims);
    const opens = (axis) =>
      unfold && isHead(dims[axis]) && shape[axis] > 1 && !(dims[axis] in (tensor.fixed ?? {}));
    this.still = new Map();
    for (const axis of lead) if (!opens(axis)) this.still.set(axis, standing(trace, step, axis, pick));
    this.rowAxes = [...lead.filter(opens), ...rows];
    this.colAxes = cols;
    this.pooled = tensor.strides ? undefined : tensor;
    [this.rows, this.cols] = this.pooled ? [tensor.rows, tensor.cols] : this.sizes;
    if (transpose) {
      [this.rowAxes, this.colAxes] = [this.colAxes, this.rowAxes];
      [this.rows, this.cols] = [this.cols, this.rows];
    }
  }

  get sizes() {
    const size = (axis) => this.step.shape[axis];
    return [product(this.rowAxes.map(size)), product(this.colAxes.map(size))];
  }

  /** Offsets of rows and of columns: value(r, c) = values[base + down[r] + across[c]]. */
  get offsets() {
    if (!this.cached) {
      const { shape, tensor } = this.step;
      const along = (axes, count) =>
        Int32Array.from({ length: count }, (_, i) => {
          const parts = unravel(i, axes.map((axis) => shape[axis]));
          return parts.reduce((sum, part, at) => sum + part * tensor.strides[axes[at]], 0);
        });
      let base = tensor.offset;
      for (const [axis, i] of this.still) base += i * tensor.strides[axis];
      this.cached = [base, along(this.rowAxes, this.rows), along(this.colAxes, this.cols)];
    }
    return this.cached;
  }

  value(row, col) {
    if (this.pooled) return this.trace.values[this.pooled.offset + this.flat(row, col)];
    const [base, down, across] = this.offsets;
    return this.trace.values[base + down[row] + across[col]];
  }

  flat(row, col) {
    return this.transpose ? col * this.pooled.cols + row : row * this.pooled.cols + col;
  }

  /** The full index in the tensor of a drawn cell. */
  index(row, col) {
    const { shape } = this.step;
    const index = new Array(shape.length).fill(0);
    for (const [axis, i] of this.still) index[axis] = i;
    const place = (axes, i) =>
      unravel(i, axes.map((axis) => shape[axis])).forEach((part, at) => (index[axes[at]] = part));
    if (this.pooled) {
      const drawn = this.transpose ? [...this.colAxes, ...this.rowAxes] : [...this.rowAxes, ...this.colAxes];
      place(drawn, this.trace.values[this.pooled.where + this.flat(row, col)]);
    } else {
      place(this.rowAxes, row);
      place(this.colAxes, col);
    }
    return index;
  }

  /** The drawn cell of a full index, or null where it is not drawn. */
  find(index) {
    const { shape } = this.step;
    for (const [axis, i] of this.still) if (index[axis] !== i) return null;
    const along = (axes) => ravel(axes.map((a) => index[a]), axes.map((a) => shape[a]));
    const [row, col] = [along(this.rowAxes), along(this.colAxes)];
    if (!this.pooled) return [row, col];
    const block = this.transpose ? [...this.pooled.block].reverse() : this.pooled.block;
    return [Math.floor(row / block[0]), Math.floor(col / block[1])];
  }

  /** What names a row (or column): the position along each of its dims, [["S", 0], …]. */
  names(axes, i) {
    const { shape, dims } = this.step;
    return unravel(i, axes.map((axis) => shape[axis])).flatMap((part, at) =>
      Object.entries(this.trace.position(dims[axes[at]], shape[axes[at]], part)),
    );
  }

  /** The string to show in a cell instead of its number, if the tensor has such. */
  display(index) {
    const { display, shape } = this.step;
    if (!display) return undefined;
    this.strings ??= display.flat(Infinity);
    const axes = this.strings.length === product(shape) ? 0 : Math.max(0, shape.length - 2);
    return this.strings[ravel(index.slice(axes), shape.slice(axes))];
  }
}

const isHead = (dim) => dim === "h" || dim === "g";

/** As core.manifest.layout: the last two axes down and across; of (S, h, d) the last two across. */
function layoutOf(dims) {
  const axes = [...dims.keys()];
  const wide = dims.length > 2 && isHead(dims.at(-2));
  const cols = axes.slice(wide ? -2 : -1);
  const rows = axes.slice(0, axes.length - cols.length).slice(-1);
  return { pick: axes.slice(0, axes.length - cols.length - rows.length), rows, cols };
}

// Where a leading axis stands: at the position that was sent, else at the picked one. A key/value
// head is the one that the picked query head reads.
function standing(trace, { dims, shape, tensor }, axis, pick) {
  const dim = dims[axis];
  if (shape[axis] === 1) return 0;
  const wanted = dim === "g" ? keyHead(trace, pick.h ?? 0) : (pick[dim] ?? 0);
  return tensor.fixed?.[dim] ?? Math.min(wanted, shape[axis] - 1);
}

/** The key/value head that a query head reads: head // (h / g). */
export function keyHead(trace, head) {
  const { h, g } = trace.sizes;
  return h && g ? Math.floor((head * g) / h) : 0;
}

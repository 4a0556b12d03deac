// Where things stand: addresses of elements, places of cells. Numbers only, no document.

const CELLS = [36, 30, 25, 20, 15, 11, 8, 6, 5, 4]; // sides tried in turn, in px
export const NUMBERED = 25; // the smallest side that holds a number
const TALL = 400; // a picture higher than this takes smaller cells
const LABEL = 15;
const GAP = 8;
const PAD = 6;
const MANY = 64; // more matrices than this go without labels

const product = (sizes) => sizes.reduce((all, size) => all * size, 1);

/** The index of the n-th element in logical order: indexAt(5, [2, 3]) is [1, 2]. */
export function indexAt(n, shape) {
  const index = new Array(shape.length);
  for (let dim = shape.length - 1; dim >= 0; dim -= 1) {
    index[dim] = n % shape[dim];
    n = Math.floor(n / shape[dim]);
  }
  return index;
}

/** The storage address of every element, in logical order: offset + Σ index·stride. */
export function addresses({ shape, strides, offset, elements }) {
  const found = new Int32Array(elements);
  const index = new Array(shape.length).fill(0);
  let address = offset;
  for (let n = 0; n < elements; n += 1) {
    found[n] = address;
    for (let dim = shape.length - 1; dim >= 0; dim -= 1) {
      index[dim] += 1;
      address += strides[dim];
      if (index[dim] < shape[dim]) break;
      address -= index[dim] * strides[dim];
      index[dim] = 0;
    }
  }
  return found;
}

/** The tensor as grids in grids: the last two dims are rows and columns, each outer dim a box. */
export function tensorLayout(shape, room) {
  return fit((cell) => nested(shape, cell, room));
}

/** The storage as one strip, folded into rows. A row holds a whole number of the strides' runs, so
 * that what belongs together stays in one row. */
export function stripLayout(length, strides, room) {
  const wide = 8 + 8 * String(length - 1).length;
  return fit((cell) => {
    const gutter = length * cell <= room ? 0 : wide; // one row needs no address at its left
    const most = Math.max(1, Math.floor((room - gutter) / cell));
    const run = Math.max(1, ...strides.filter((stride) => stride <= most && stride <= length));
    const columns = Math.min(length, Math.floor(most / run) * run);
    const place = (n) => [gutter + (n % columns) * cell, Math.floor(n / columns) * cell];
    const rows = Math.ceil(length / columns);
    const labels = Array.from({ length: rows > 1 ? rows : 0 }, (_, row) => ({
      x: 0, y: row * cell, w: gutter - 6, h: cell, text: String(row * columns),
    })).filter((label, row) => row % Math.ceil(14 / cell) === 0);
    const frame = { cell, width: gutter + columns * cell, height: rows * cell, columns };
    return { ...frame, ...places(length, place), boxes: [], labels };
  });
}

function fit(attempt) {
  let last;
  for (const cell of CELLS) {
    last = attempt(cell);
    if (last.height <= TALL && last.width <= (last.room ?? Infinity)) return last;
  }
  return last;
}

function places(count, place) {
  const x = new Float32Array(count);
  const y = new Float32Array(count);
  for (let n = 0; n < count; n += 1) [x[n], y[n]] = place(n);
  return { x, y, count };
}

function nested(shape, cell, room) {
  const columns = shape.at(-1) ?? 1;
  const rows = shape.length > 1 ? shape.at(-2) : 1;
  const outer = shape.slice(0, -2);
  const inside = room - 2 * PAD * outer.length;
  // A vector is folded like text: a line of a thousand cells helps nobody.
  const fold = shape.length < 2 ? Math.max(1, Math.min(columns, Math.floor(inside / cell))) : columns;
  const lines = shape.length < 2 ? Math.ceil(columns / fold) : rows;
  const levels = boxLevels(outer, fold * cell, lines * cell, inside);
  const within = rows * columns;
  const corner = corners(outer, levels);
  const place = (n) => {
    const [x, y] = corner[Math.floor(n / within)];
    const left = n % within;
    return [x + (left % fold) * cell, y + Math.floor(left / fold) * cell];
  };
  const size = levels[0] ?? { w: fold * cell, h: lines * cell };
  const frame = { cell, room, width: size.w, height: size.h, rows, columns };
  const { boxes, labels } = frames(outer, levels, corner, fold * cell, lines * cell);
  return { ...frame, ...places(product(shape), place), boxes, labels };
}

/** From the inside out: how many children of one level stand side by side, and its size. */
function boxLevels(outer, w, h, room) {
  const labelled = product(outer) <= MANY;
  const levels = [];
  for (let dim = outer.length - 1; dim >= 0; dim -= 1) {
    const top = labelled && dim === outer.length - 1 ? LABEL : 0; // labels: innermost only
    const gap = labelled ? GAP : 3;
    const nest = dim < outer.length - 1 ? PAD : 0;
    const child = { w: w + 2 * nest, h: h + top + 2 * nest };
    const across = Math.max(1, Math.min(outer[dim], Math.floor((room + gap) / (child.w + gap))));
    const down = Math.ceil(outer[dim] / across);
    w = across * child.w + (across - 1) * gap;
    h = down * child.h + (down - 1) * gap;
    levels.unshift({ w, h, across, child, top, gap, nest, labelled });
  }
  return levels;
}

/** The top left corner of every matrix. */
function corners(outer, levels) {
  return Array.from({ length: product(outer) }, (_, n) => {
    let [x, y] = [0, 0];
    indexAt(n, outer).forEach((at, dim) => {
      const { across, child, top, gap, nest } = levels[dim];
      x += (at % across) * (child.w + gap) + nest;
      y += Math.floor(at / across) * (child.h + gap) + top + nest;
    });
    return [x, y];
  });
}

function frames(outer, levels, corner, w, h) {
  const boxes = corner.map(([x, y]) => ({ x, y, w, h }));
  if (!levels.length) return { boxes, labels: [] };
  const { top, labelled } = levels.at(-1);
  const labels = labelled
    ? corner.map(([x, y], n) => ({
        x, y: y - top, w: Math.max(w, 24), h: top, text: named(indexAt(n, outer), w),
      }))
    : [];
  return { boxes: boxes.concat(outerFrames(outer, levels, corner, w, h)), labels };
}

/** "[0, 1, :, :]", or "0,1" over a matrix too narrow for that. */
function named(index, w) {
  const full = `[${index.join(", ")}, :, :]`;
  return full.length * 6 < w + GAP ? full : index.join(",");
}

/** A frame around all matrices that share the outermost indices, for 4 and 5 dims. */
function outerFrames(outer, levels, corner, w, h) {
  const found = [];
  for (let dim = 0; dim < outer.length - 1; dim += 1) {
    const each = product(outer.slice(dim + 1));
    const inner = levels[dim + 1];
    const nests = PAD * (outer.length - 1 - dim);
    for (let n = 0; n < corner.length; n += each) {
      const [x, y] = corner[n];
      const top = y - levels.at(-1).top - nests;
      found.push({ x: x - nests, y: top, w: inner.w + 2 * PAD, h: inner.h + 2 * PAD, outer: true });
    }
  }
  return found;
}

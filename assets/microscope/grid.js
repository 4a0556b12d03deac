// What a table of numbers and a picture of colours have in common: names of rows and columns, which
// cell holds the focus, where an arrow key leads.

import { symbolNode } from "./format.js";
import { ravel } from "./trace.js";

/** A dim in its colour; "h·d_k" is two of them. */
export function dimNodes(dim, dims, palette) {
  return dim.split(/([·*])/).map((part) => {
    if (/^[·*]$/.test(part)) return "·";
    const known = dims?.[part];
    const node = symbolNode(part, "dim");
    if (known?.colour) node.style.color = palette.text(known.colour);
    if (known?.name) node.title = `${part}: ${known.name}`;
    return node;
  });
}

/** What stands beside a row or above a column: the token if there is one, else "d_k 1". */
export function label(face, axes, i, labels) {
  return face
    .names(axes, i)
    .map(([dim, at]) => tokenOf(face, labels, dim, at) ?? `${dim} ${at + 1}`)
    .join(" · ");
}

// Tokens are listed per dim, and where the samples of a batch differ, per sample.
export function tokenOf({ still, step }, labels, dim, at) {
  const names = labels?.[dim];
  if (!Array.isArray(names?.[0])) return names?.[at];
  return names[still.get(step.dims.indexOf("B")) ?? 0]?.[at];
}

/** What cells and pictures have in common: which cell holds the focus, which cells are marked. */
export class Grid {
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
    const { shape } = face.step;
    // By way of the element: a cell of a pooled picture stands for one somewhere in its block.
    const index = face.index(row, col);
    const along = (axes) => ravel(axes.map((axis) => index[axis]), axes.map((axis) => shape[axis]));
    const name = (axes) => label(face, axes, along(axes), look.labels);
    return `${name(face.rowAxes)} · ${name(face.colAxes)}`;
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

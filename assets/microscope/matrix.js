// One drawn matrix: a table of numbers while they fit, else a picture of colours. Both answer the
// same questions: cell under the pointer, mark these cells, move the focus.

import { element, fill, symbolNode, write } from "./format.js";
import { dimNodes } from "./grid.js";
import { Picture } from "./picture.js";
import { Table } from "./table.js";

const MOST_COLUMNS = 20;
const MOST_ROWS = 24;

/**
 * Draw a face. `look`: {palette, text, labels, dims, side, ratio, tint}; `side` is the
 * most a picture may take, `ratio` the device's pixels per CSS pixel.
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

function legend(face, { palette, text }) {
  const { kind, max } = face.step.range;
  const bar = element("span", { class: "bar" });
  bar.style.background = palette.gradient(kind);
  const [low, high] = kind === "unit" ? ["0", "1"] : [write(-max, 3), write(max, 3)];
  const name = fill(text.scale, { low, high });
  const node = element("div", { class: "legend", role: "img", "aria-label": name });
  node.append(element("span", { text: low }), bar, element("span", { text: high }));
  return node;
}

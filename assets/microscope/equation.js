// One step as an equation: operands, operators, result, each matrix drawn once and kept.

import { explain } from "./arithmetic.js";
import { element } from "./format.js";
import { draw } from "./matrix.js";
import { fly } from "./motion.js";
import { Face } from "./trace.js";

const MOST_UNFOLDED = 48; // rows, all heads together
const MOST_KEPT = 60;
const NARROW = 640;

export class Equation {
  constructor() {
    this.node = element("div", { class: "equation", role: "group" });
    this.kept = new Map();
    this.shown = [];
  }

  /** Forget the drawn matrices: the numbers, the theme or the width have changed. */
  clear() {
    this.kept.clear();
  }

  /** Draw a step. `scene`: {trace, pick, palette, text, width}. */
  lay(step, scene) {
    const { trace } = (this.scene = scene);
    this.step = step;
    const terms = step.equation?.length ? step.equation : [{ symbol: step.symbol }];
    const many = terms.filter(({ symbol }) => trace.places.has(symbol)).length;
    this.shown = [];
    const nodes = [];
    let operators = [];
    for (const { operator, symbol, transpose } of terms) {
      if (operator !== undefined) operators.push(operator);
      if (!trace.places.has(symbol)) continue;
      const grid = this.matrix(trace.step(symbol), transpose, many);
      this.shown.push(grid);
      nodes.push(element("div", { class: "term" }, operatorNode(operators), grid.box));
      operators = [];
    }
    this.result = this.shown.findLast(({ face }) => face.symbol === step.symbol);
    this.operands = this.findOperands();
    for (const grid of this.shown) grid.box.classList.toggle("result", grid === this.result);
    this.node.replaceChildren(...nodes);
  }

  // The drawn matrix of each tensor that the step reads; one read twice is drawn twice.
  findOperands() {
    const { reads } = this.step;
    return reads.map((symbol, at) => {
      const same = this.shown.filter((grid) => grid !== this.result && grid.face.symbol === symbol);
      return same[reads.slice(0, at).filter((other) => other === symbol).length] ?? same[0];
    });
  }

  matrix(of, transpose = false, many = 1) {
    const { trace, pick, palette, text, width } = this.scene;
    const unfold = this.step.op.kind === "gather" && this.unfolds();
    const tint = this.step.tint ?? (unfold ? "h" : undefined);
    const room = width < NARROW ? width - 60 : (width - 90 * many) / many;
    const side = Math.round(Math.min(360, Math.max(200, room)));
    const name = [of.symbol, transpose, unfold, tint, side, ...Object.values(pick)].join();
    if (!this.kept.has(name)) {
      if (this.kept.size > MOST_KEPT) this.kept.clear();
      const face = new Face(trace, of, pick, { transpose, unfold });
      const { dims, labels } = trace.manifest;
      const ratio = window.devicePixelRatio || 1;
      this.kept.set(name, draw(face, { palette, text, labels, dims, side, ratio, tint }));
    }
    const grid = this.kept.get(name);
    grid.clear();
    grid.pin(null);
    return grid;
  }

  // All heads at once where a step is about how they lie, and there is room for them.
  unfolds() {
    const { trace, pick } = this.scene;
    return [this.step.symbol, ...this.step.reads].every((symbol) => {
      const of = trace.step(symbol);
      return of && new Face(trace, of, pick, { unfold: true }).rows <= MOST_UNFOLDED;
    });
  }

  /** Let numbers that only move be seen moving from the operand to the result. */
  fly() {
    const { step, result, scene } = this;
    const [operand] = this.operands;
    const tables = [operand, result].every((grid) => grid?.mode === "cells");
    if (step.op.kind !== "gather" || !tables) return;
    const pairs = [];
    for (let r = 0; r < result.face.rows; r += 1) {
      for (let c = 0; c < result.face.cols; c += 1) {
        const { sources } = explain(scene.trace, step, result.face.index(r, c), scene.text);
        const from = sources.length && operand.face.find(sources[0].index);
        if (from) pairs.push([operand.node(...from), result.node(r, c)]);
      }
    }
    fly(pairs, [result.scroll]);
  }

  /** [matrix, [row, col]] under an event, or undefined. */
  cellAt(event) {
    const grid = this.shown.find(({ box }) => box.contains(event.target));
    const cell = grid?.at(event);
    return cell ? [grid, cell] : undefined;
  }

  /** The drawn cell of an element, in the result if it is there. */
  find({ symbol, index }) {
    const order = [this.result, ...this.shown].filter(Boolean);
    const grid = order.find(({ face }) => face.symbol === symbol);
    const cell = grid?.face.find(index);
    return cell && grid.inside(...cell) ? [grid, cell] : null;
  }
}

const OPERATORS = { "@": "×" };

// What stands between two matrices: "×", "÷ √3 =", "→" (which says all, without an "=").
function operatorNode(signs) {
  const shown = signs.includes("→") ? ["→"] : signs.map((sign) => OPERATORS[sign] ?? sign);
  if (!shown.length) return null;
  const words = shown.map((sign) => element("span", { class: sign.length > 2 ? "word" : null, text: sign }));
  return element("div", { class: "operator" }, ...words);
}

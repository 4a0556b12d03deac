// How one number came about: the cells it was made from and the sum, product or choice, as pieces
// of text. A piece is [text, kind]: kind 0 and 1 mark numbers of the first and second operand.

import { cellName, factor, fill, write } from "./format.js";
import { ravel, unravel } from "./trace.js";

const MOST_TERMS = 8;
const MOST_POWERS = 6;

/**
 * The arithmetic of element `index` of a step.
 *
 * -> {value, pieces, note, sources: [{read, index}]}; pieces is null where the numbers it takes
 * are not in the browser.
 */
export function explain(trace, step, index, text) {
  const inputs = step.reads.map((symbol) => trace.step(symbol));
  const value = trace.at(step, index);
  const rule = inputs.every(Boolean) ? RULES[step.op.kind] : undefined;
  const known = { value, pieces: null, note: "", sources: [] };
  if (!rule) return { ...known, pieces: [], note: step.op.kind === "given" ? text.given : "" };
  const found = rule({ trace, step, index, inputs, value, text, at: reader(trace, inputs) });
  return { ...known, ...found };
}

// Reads cells of the operands and remembers which.
function reader(trace, inputs) {
  const read = (operand, index) => {
    const value = trace.at(inputs[operand], index);
    read.sources.push({ read: operand, index });
    read.missing ||= value === undefined;
    return value;
  };
  read.sources = [];
  read.missing = false;
  return read;
}

// The pieces, unless a number was missing.
const result = (at, pieces, note = "") => ({
  sources: at.sources,
  pieces: at.missing ? null : pieces,
  note: at.missing ? "" : note,
});

// A smaller tensor under a larger one: aligned from the right, an axis of size 1 stays at 0.
function broadcast(index, shape) {
  return index.slice(index.length - shape.length).map((i, axis) => (shape[axis] === 1 ? 0 : i));
}

function contract({ step, index, inputs, at }) {
  const { op } = step;
  const position = Object.fromEntries(op.out.map((name, axis) => [name, index[axis]]));
  const lengths = {};
  op.in.forEach((names, operand) =>
    names.forEach((name, axis) => {
      lengths[name] = Math.max(lengths[name] ?? 1, inputs[operand].shape[axis]);
    }),
  );
  const summed = op.sum.map((name) => lengths[name]);
  const count = summed.reduce((a, b) => a * b, 1);
  const terms = [];
  for (let k = 0; k < count; k += 1) {
    unravel(k, summed).forEach((i, axis) => (position[op.sum[axis]] = i));
    terms.push(
      op.in.map((names, operand) => {
        const { shape } = inputs[operand];
        return at(operand, names.map((name, axis) => (shape[axis] === 1 ? 0 : position[name])));
      }),
    );
  }
  const written = terms.map(([a, b]) => [[factor(a), 0], ["·"], [factor(b), 1]]);
  return result(at, shorten(written, MOST_TERMS));
}

function gather({ trace, step, index, inputs, at, text }) {
  const { op } = step;
  const position = {};
  op.out.forEach((names, axis) =>
    unravel(index[axis], names.map((name) => op.sizes[name])).forEach((i, part) => {
      position[names[part]] = i;
    }),
  );
  const from = op.in.map((names) =>
    ravel(names.map((name) => position[name]), names.map((name) => op.sizes[name])),
  );
  at(0, from);
  const source = cellName(step.reads[0], from);
  const moved = trace.place(step, index) !== trace.place(inputs[0], from);
  return result(at, [[source, 0]], fill(moved ? text.copied : text.same_number, { source }));
}

function concat({ step, index, inputs, at, text }) {
  const axis = index.length + step.op.axis;
  const from = [...index];
  let operand = 0;
  while (operand < inputs.length - 1 && from[axis] >= inputs[operand].shape[axis]) {
    from[axis] -= inputs[operand].shape[axis];
    operand += 1;
  }
  at(operand, from);
  const source = cellName(step.reads[operand], from);
  return result(at, [[source, operand]], fill(text.copied, { source }));
}

function scale({ step, index, at }) {
  const x = at(0, index);
  const by = step.op.tex ?? factor(step.op.factor);
  // A factor of 1/√d_k is read as a division.
  return result(at, [[write(x), 0], [by.startsWith("1/√") ? ` / ${by.slice(2)}` : `·${by}`]]);
}

function bias({ index, inputs, at }) {
  const x = at(0, index);
  const added = at(1, broadcast(index, inputs[1].shape));
  return result(at, [[write(x), 0], [" + "], [factor(added), 1]]);
}

function mask({ step, index, inputs, at, text }) {
  at(0, index);
  const where = broadcast(index, inputs[1].shape);
  const seen = at(1, where);
  const said = { mask: `${cellName(step.reads[1], where)} = ${write(seen)}` };
  if (!seen) return result(at, [], fill(text.mask_closed, said));
  return result(at, [[cellName(step.reads[0], index), 0]], fill(text.mask_open, said));
}

function softcap({ step, index, at }) {
  const x = at(0, index);
  const cap = write(step.op.cap);
  return result(at, [[`${cap}·tanh(`], [write(x), 0], [` / ${cap})`]]);
}

// A row by the root of its mean square, then by its column's gain.
function rms({ step, index, inputs, at }) {
  const [row, j] = [index.slice(0, -1), index.at(-1)];
  const line = Array.from({ length: step.shape.at(-1) }, (_, k) => at(0, [...row, k]));
  const mean = line.reduce((sum, x) => sum + x * x, 0) / line.length;
  const gain = at(1, broadcast(index, inputs[1].shape));
  const root = ` / √(${factor(mean)} + ${write(step.op.eps)})·`;
  return result(at, [[write(line[j]), 0], [root], [factor(gain), 1]]);
}

// An entry and its partner, turned by the angle of their position.
function rotate({ step, index, inputs, at, text }) {
  const { pairs, width } = step.op;
  const j = index.at(-1);
  const own = at(0, index);
  if (j >= width) {
    const source = cellName(step.reads[0], index);
    return result(at, [[source, 0]], fill(text.copied, { source }));
  }
  const by = pairs === "halves" ? width / 2 : 1;
  const first = pairs === "halves" ? j < by : j % 2 === 0;
  const partner = at(0, [...index.slice(0, -1), first ? j + by : j - by]);
  const angle = broadcast(index, inputs[1].shape);
  const [cos, sin] = [at(1, angle), at(2, angle)];
  const turned = factor(first ? -partner : partner);
  return result(at, [
    ...[[factor(own), 0], ["·"], [factor(cos), 1], [" + "]],
    ...[[turned, 0], ["·"], [factor(sin), 2]],
  ]);
}

function softmax({ step, index, at, text }) {
  const row = index.slice(0, -1);
  const powers = [];
  for (let j = 0; j < step.shape.at(-1); j += 1) {
    const x = at(0, [...row, j]);
    powers.push([["e"], ["^"], [factor(x), 0]]);
    powers.at(-1).x = x;
  }
  const blind = powers.every(({ x }) => x === -Infinity);
  if (blind) return result(at, [], text.blind);
  const own = powers[index.at(-1)];
  return result(at, [...own, [" / ("], ...shorten(powers, MOST_POWERS), [")"]]);
}

const RULES = { contract, gather, concat, scale, bias, mask, softcap, rms, rotate, softmax };

// a + b + c + … (60) + z: a long sum keeps its first terms and its last, and says how many it hides.
function shorten(terms, most) {
  const hidden = terms.length > most ? terms.length - 4 : 0;
  const shown = hidden ? [...terms.slice(0, 3), [[`… (${hidden})`]], terms.at(-1)] : terms;
  return shown.flatMap((term, place) => (place ? [[" + "], ...term] : term));
}

// The rulers along the map's left and upper edge: positions, and words where each has room for one.

import { roundStep } from "./view.js";

const LINE = 16; // px between two marks down the left edge
const WORD = 44; // px between two words along the top
const MARK = 64; // px between two numbers along the top

export const whole = (n) => Math.round(n).toLocaleString("en-US");

/** Draw both. `look`: {context, box, view, ink, font, tokens}. */
export function rulers({ context, box, view, ink, font, tokens }) {
  context.font = font;
  context.fillStyle = ink;
  context.strokeStyle = ink;
  context.lineWidth = 1;
  const [perRow, perCol] = [box.height / view.rows, box.width / view.cols];
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (const i of marks(view.i, view.rows, Math.max(LINE, perRow < LINE ? 40 : 0) / perRow)) {
    const y = box.y + (i + 0.5 - view.i) * perRow;
    if (y < box.y || y > box.y + box.height) continue;
    const word = perRow >= LINE ? tokens?.rows?.[i - tokens.from[0]] : undefined;
    write(context, word ?? whole(i), box.x - 8, y, box.x - 10);
    tick(context, box.x - 5, y, box.x - 1, y);
  }
  context.textBaseline = "alphabetic";
  context.textAlign = "center";
  const words = perCol >= WORD && tokens?.cols;
  for (const j of marks(view.j, view.cols, Math.max(words ? WORD : MARK, 1) / perCol)) {
    const x = box.x + (j + 0.5 - view.j) * perCol;
    if (x < box.x || x > box.x + box.width) continue;
    const word = words ? tokens.cols[j - tokens.from[1]] : undefined;
    const said = word ?? whole(j);
    const half = context.measureText(said).width / 2;
    const fits = Math.min(x, box.x + box.width - half);
    write(context, said, fits, box.y - 9, Math.max(perCol, MARK) - 6);
    tick(context, x, box.y - 5, x, box.y - 1);
  }
}

function marks(from, size, least) {
  const step = roundStep(least);
  const found = [];
  for (let at = Math.ceil(from / step) * step; at < from + size; at += step) found.push(at);
  return found;
}

function write(context, text, x, y, most) {
  let shown = text;
  while (shown.length > 1 && context.measureText(shown).width > most) shown = `${shown.slice(0, -2)}…`;
  context.fillText(shown, x, y);
}

function tick(context, x0, y0, x1, y1) {
  context.beginPath();
  context.moveTo(Math.round(x0) + 0.5, Math.round(y0) + 0.5);
  context.lineTo(Math.round(x1) + 0.5, Math.round(y1) + 0.5);
  context.stroke();
}

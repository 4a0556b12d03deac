// One picture of many cells. Few cells are elements of the page, which a screen reader can walk;
// many are painted on a canvas, as a page of eight thousand elements is slow to build.

import { NUMBERED } from "./layout.js";

const MOST_ELEMENTS = 400;

export function make(parent, tag, attributes = {}, text) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  if (parent) parent.append(element);
  return element;
}

export class Board {
  constructor(parent, kind) {
    this.kind = kind; // "element" or "address": what data-… names a cell
    this.scroll = make(parent, "div", { class: "scroll picture" });
    this.surface = make(this.scroll, "div", { class: "surface", tabindex: "0", "data-board": kind });
    this.cells = [];
    this.lit = [];
  }

  /** Draw all cells. `look` has a label and an ink for all, and functions of the cell's number for
   * its tone, text, name, and the group and row it belongs to. */
  paint(layout, look) {
    this.layout = layout;
    this.lit = [];
    this.cells = [];
    const { surface } = this;
    surface.replaceChildren();
    surface.style.width = `${layout.width + 2}px`;
    surface.style.height = `${layout.height + 2}px`;
    this.asElements = layout.count <= MOST_ELEMENTS;
    surface.dataset.mode = this.asElements ? "cells" : "canvas";
    surface.setAttribute("role", this.asElements ? "grid" : "application");
    surface.setAttribute("aria-label", look.label);
    if (this.asElements) this.#elements(look);
    else this.#canvas(look);
    for (const { x, y, w, h, text } of layout.labels) {
      const tag = make(surface, "span", { class: "tag", "aria-hidden": "true" }, text);
      Object.assign(tag.style, box(x, y, w, h));
    }
    this.over = this.#sheet();
    this.trail = this.#sheet();
  }

  #sheet() {
    const canvas = make(this.surface, "canvas", { class: "over", "aria-hidden": "true" });
    return size(canvas, this.layout.width + 2, this.layout.height + 2);
  }

  #elements(look) {
    const { layout, surface } = this;
    for (const frame of layout.boxes) {
      const edge = make(surface, "div", { class: frame.outer ? "frame outer" : "frame", "aria-hidden": "true" });
      Object.assign(edge.style, box(frame.x, frame.y, frame.w, frame.h));
    }
    const rows = new Map();
    for (let n = 0; n < layout.count; n += 1) {
      const group = look.group(n);
      if (!rows.has(group)) rows.set(group, make(surface, "div", { role: "rowgroup" }));
      const key = `${group}/${look.row(n)}`;
      if (!rows.has(key)) rows.set(key, make(rows.get(group), "div", { role: "row" }));
      const cell = make(rows.get(key), "div", { role: "gridcell", id: `${this.kind}-${n}` });
      cell.setAttribute("aria-label", look.name(n));
      cell.dataset[this.kind] = n;
      if (layout.cell >= NUMBERED) write(cell, look.text(n), layout.cell);
      Object.assign(cell.style, box(layout.x[n], layout.y[n], layout.cell, layout.cell));
      const tone = look.tone(n);
      if (tone) Object.assign(cell.style, { background: tone, color: look.ink });
      else cell.dataset.unread = "";
      this.cells.push(cell);
    }
  }

  #canvas(look) {
    const { layout, surface } = this;
    const pen = size(make(surface, "canvas", { "aria-hidden": "true" }), layout.width + 2, layout.height + 2);
    const gap = layout.cell > 6 ? 1 : 0;
    let last;
    for (let n = 0; n < layout.count; n += 1) {
      const tone = look.tone(n);
      if (!tone) continue;
      if (tone !== last) pen.fillStyle = last = tone;
      pen.fillRect(layout.x[n] + 1, layout.y[n] + 1, layout.cell - gap, layout.cell - gap);
    }
    pen.strokeStyle = getComputedStyle(surface).getPropertyValue("--line");
    for (const { x, y, w, h } of layout.boxes) pen.strokeRect(x + 0.5, y + 0.5, w + 1, h + 1);
    if (!layout.boxes.length) pen.strokeRect(0.5, 0.5, layout.width + 1, layout.height + 1);
  }

  /** Light these cells and no others; the first is the one that assistive technology is told of. */
  light(numbers) {
    for (const n of this.lit) delete this.cells[n]?.dataset.lit;
    this.lit = numbers;
    if (this.asElements) {
      for (const n of numbers) this.cells[n].dataset.lit = "";
      const first = numbers.length ? `${this.kind}-${numbers[0]}` : "";
      if (first) this.surface.setAttribute("aria-activedescendant", first);
      else this.surface.removeAttribute("aria-activedescendant");
    } else {
      this.#outline(numbers);
    }
  }

  #outline(numbers) {
    const { over, layout } = this;
    wipe(over);
    over.strokeStyle = getComputedStyle(this.surface).getPropertyValue("--lit");
    over.fillStyle = over.strokeStyle;
    over.lineWidth = 2;
    const side = layout.cell;
    for (const n of numbers) {
      if (side < 8) over.fillRect(layout.x[n], layout.y[n], side + 2, side + 2);
      else over.strokeRect(layout.x[n] + 1, layout.y[n] + 1, side, side);
    }
  }

  /** Draw the way through these cells, fading towards its start, or all of it pale. A step to the
   * next cell is a quiet line, a jump an arc. */
  path(stops, fades) {
    const style = getComputedStyle(this.surface);
    const tones = { jump: style.getPropertyValue("--lit"), step: style.getPropertyValue("--quiet") };
    wipe(this.trail);
    for (let k = 1; k < stops.length; k += 1) {
      this.trail.globalAlpha = fades ? k / stops.length : 0.4;
      this.#hop(stops[k - 1], stops[k], tones);
    }
    this.trail.globalAlpha = 1;
  }

  #hop(from, to, tones) {
    const pen = this.trail;
    const [x, y] = this.centre(from);
    const [u, v] = this.centre(to);
    const jump = to !== from + 1;
    pen.strokeStyle = jump ? tones.jump : tones.step;
    pen.lineWidth = jump ? 1.5 : 3;
    pen.beginPath();
    pen.moveTo(x, y);
    const lift = jump ? Math.min(30, 6 + Math.abs(u - x) / 3) : 0;
    if (jump || y === v) pen.quadraticCurveTo((x + u) / 2, Math.max(2, Math.min(y, v) - lift), u, v);
    pen.stroke();
  }

  forget() {
    wipe(this.trail);
  }

  /** The cell under the pointer, or −1. */
  hit(event) {
    const { left, top } = this.surface.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    const { layout } = this;
    for (let n = 0; n < layout.count; n += 1) {
      const [dx, dy] = [x - layout.x[n], y - layout.y[n]];
      if (dx >= 0 && dy >= 0 && dx < layout.cell && dy < layout.cell) return n;
    }
    return -1;
  }

  /** Bring cell n into the visible part of a picture larger than its room. */
  reveal(n) {
    const { scroll, layout } = this;
    const [x, y, side] = [layout.x[n], layout.y[n], layout.cell + 8];
    const left = Math.max(x + side - scroll.clientWidth, Math.min(scroll.scrollLeft, x));
    const top = Math.max(y + side - scroll.clientHeight, Math.min(scroll.scrollTop, y));
    if (left !== scroll.scrollLeft || top !== scroll.scrollTop) scroll.scrollTo(left, top);
  }

  centre(n) {
    const half = this.layout.cell / 2;
    return [this.layout.x[n] + half + 1, this.layout.y[n] + half + 1];
  }
}

/** A number as large as its cell allows; none where it would be too small to read. */
function write(cell, text, side) {
  const size = Math.min(12, (side - 5) / (0.6 * text.length));
  if (size < 8) return;
  cell.textContent = text;
  cell.style.fontSize = `${size}px`;
}

function wipe(pen) {
  pen.clearRect(0, 0, pen.canvas.width, pen.canvas.height);
}

function box(x, y, w, h) {
  return { left: `${x + 1}px`, top: `${y + 1}px`, width: `${w}px`, height: `${h}px` };
}

/** Give a canvas this size in CSS pixels, sharp on any screen, and return its pen. */
function size(canvas, width, height) {
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.ceil(width * scale);
  canvas.height = Math.ceil(height * scale);
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  return pen;
}

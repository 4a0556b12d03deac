// The microscope: one step of a trace as an equation of matrices, with the arithmetic of each cell.
//
// Streamlit calls `draw` again on every change of data or theme, without cleaning up in between, so
// there is one Microscope per root and `draw` only tells it what is new. The whole trace is in the
// browser: stepping, hovering and picking a head ask the server nothing. It is told afterwards.

import { explain } from "./arithmetic.js";
import { Palette } from "./colour.js";
import { cellName, element, fill, symbolNode, write } from "./format.js";
import { listen, mute, prefer } from "./keys.js";
import { draw as drawMatrix } from "./matrix.js";
import { fly } from "./motion.js";
import { decode } from "./payload.js";
import { Rail } from "./rail.js";
import { Face, Trace, keyHead } from "./trace.js";

const REPORT_AFTER = 150; // ms without a further step before the page is told
const PLAY_EVERY = 1500;
const SPEAK_AFTER = 350;
const RAPID = 250; // steps closer than this do not fly
const MOST_UNFOLDED = 48; // rows, all heads together
const MOST_CACHED = 60;

const sheet = new CSSStyleSheet();
const style = await fetch(new URL("microscope.css", import.meta.url));
sheet.replaceSync(await style.text());

const scopes = new WeakMap();
const remembered = new Map(); // where a microscope stood, should the page mount it anew

export default function draw(component) {
  const { parentElement } = component;
  let scope = scopes.get(parentElement);
  if (!scope?.root.isConnected) {
    scope?.dispose();
    scope = new Microscope(parentElement);
    scopes.set(parentElement, scope);
  }
  scope.update(component);
  return () => scope.dispose();
}

class Microscope {
  constructor(parent) {
    const sheets = (parent.getRootNode() ?? document).adoptedStyleSheets;
    if (!sheets.includes(sheet)) sheets.push(sheet);
    this.matrices = new Map();
    this.build();
    parent.append(this.root);
    this.width = this.root.clientWidth;
    this.observer = new ResizeObserver(([{ contentRect }]) => this.resize(contentRect.width));
    this.observer.observe(this.root);
    listen(this);
  }

  build() {
    this.root = element("section", { class: "microscope", "data-testid": "microscope", tabindex: "-1" });
    const button = (name, act) => {
      const made = element("button", { type: "button", class: `icon ${name}` });
      made.addEventListener("click", act);
      return made;
    };
    this.buttons = {
      previous: button("previous", () => this.walk(-1)),
      play: button("play", () => this.toggle()),
      next: button("next", () => this.walk(1)),
    };
    this.position = element("span", { class: "position" });
    this.heading = element("span", { class: "heading" });
    this.pickers = element("div", { class: "pickers" });
    this.hints = element("div", { class: "hints" });
    this.rail = new Rail((place) => this.jump(place));
    this.equation = element("div", { class: "equation" });
    this.arithmetic = element("div", { class: "arithmetic", "data-testid": "arithmetic" });
    this.live = element("div", { class: "unseen", "aria-live": "polite" });
    const { previous, play, next } = this.buttons;
    this.root.append(
      element(
        "div",
        { class: "bar-top" },
        element("div", { class: "buttons" }, previous, play, next),
        element("output", {}, this.position, this.heading), // read out on each step
        this.pickers,
        this.hints,
      ),
      this.rail.node,
      this.equation,
      this.arithmetic,
      this.live,
    );
    this.root.addEventListener("pointerdown", () => prefer(this));
    this.root.addEventListener("focusin", () => prefer(this));
    this.watchCells();
  }

  watchCells() {
    const on = (type, act) => this.equation.addEventListener(type, act);
    const hover = (event) => {
      const found = this.cellAt(event);
      if (found) this.activate(...found);
    };
    on("pointerover", hover);
    // Within a picture the pointer moves from cell to cell without entering a new node.
    on("pointermove", (event) => event.target.tagName === "CANVAS" && hover(event));
    on("pointerleave", () => this.rest());
    on("focusin", (event) => {
      const found = this.cellAt(event);
      if (found) this.activate(...found, true);
    });
    on("click", (event) => {
      const found = this.cellAt(event);
      if (!found) return;
      const [grid, cell] = found;
      if (grid.mode === "heatmap") grid.focus(...cell);
      else grid.settle(...cell);
      this.pin(grid, cell);
    });
  }

  // ── What Streamlit says ───────────────────────────────────────────────────────────────────────

  update(component) {
    this.send = component.setStateValue ?? (() => {});
    const data = decode(component.data);
    if (!data) return;
    const palette = this.readPalette();
    const sameLook = palette.signature === this.palette?.signature;
    const said = JSON.stringify([data.id, data.text, data.step, data.epoch]);
    const same = data.id !== undefined && said === this.said;
    if (same && sameLook) return this.settlePick();
    this.palette = palette;
    this.said = said;
    this.root.style.setProperty("--muted", palette.muted);
    this.matrices.clear();
    if (!same) this.adopt(data);
    this.words();
    this.rail.fill(this.trace.steps, this.text);
    this.render();
  }

  readPalette() {
    const { backgroundColor, color } = getComputedStyle(this.root);
    const raised = getComputedStyle(this.rail.node).backgroundColor;
    return new Palette(backgroundColor, raised, color);
  }

  // New data: the step stays where the reader is, unless the page asks for another (a new epoch).
  adopt(data) {
    const plain = (part) => (typeof part === "string" ? JSON.parse(part) : part);
    const manifest = plain(data.manifest);
    const before = this.trace;
    const symbol = before?.steps[this.place]?.symbol;
    this.text = plain(data.text);
    this.trace = new Trace(manifest, data.values);
    this.gradient = manifest.mode === "gradient" ? (manifest.target ?? {}) : null;
    this.memory = data.key ?? "";
    const last = this.trace.steps.length - 1;
    const clamp = (place) => Math.min(last, Math.max(0, place ?? 0));
    const kept = remembered.get(this.memory);
    const epoch = data.epoch ?? 0;
    if (this.epoch !== epoch) {
      const resumed = this.epoch === undefined && kept?.epoch === epoch;
      clearTimeout(this.reporting);
      this.pause();
      this.place = clamp(resumed ? kept.place : data.step);
      this.pinned = resumed ? kept.pinned : null;
      this.epoch = epoch;
    } else {
      this.place = this.trace.places.get(symbol) ?? clamp(this.place);
    }
    // What the page last heard is no longer so.
    if (this.sent !== undefined && this.sent !== this.place) this.report();
    this.adoptPick(manifest, kept);
    this.remember();
  }

  adoptPick(manifest, kept) {
    const asked = JSON.stringify(manifest.pick ?? {});
    const local = this.pick ?? (kept?.epoch === this.epoch ? kept?.pick : undefined);
    const stays = local && this.trace.whole && (asked === this.askedPick || !this.askedPick);
    const pick = { ...manifest.pick, ...(stays ? local : {}) };
    for (const [dim, size] of Object.entries(manifest.extents ?? {})) {
      pick[dim] = Math.min(pick[dim] ?? 0, size - 1);
    }
    this.pick = pick;
    this.askedPick = asked;
    this.root.removeAttribute("aria-busy");
  }

  remember() {
    const { epoch, place, pick, pinned } = this;
    remembered.set(this.memory, { epoch, place, pick, pinned });
  }

  // ── What the page is told ─────────────────────────────────────────────────────────────────────

  report() {
    clearTimeout(this.reporting);
    this.reporting = setTimeout(() => this.flush(), REPORT_AFTER);
  }

  flush() {
    if (this.reporting === undefined) return;
    clearTimeout(this.reporting);
    this.reporting = undefined;
    this.sent = this.place;
    this.send("step", this.place);
  }

  // ── Steps ─────────────────────────────────────────────────────────────────────────────────────

  walk(by) {
    this.pause();
    this.jump(this.place + by);
  }

  jump(place) {
    const to = Math.min(this.trace.steps.length - 1, Math.max(0, place));
    if (to === this.place) return;
    const now = performance.now();
    const rapid = now - (this.steppedAt ?? -RAPID) < RAPID;
    this.steppedAt = now;
    this.place = to;
    this.report();
    this.remember();
    this.render();
    if (!rapid) this.flyIn();
  }

  toggle() {
    if (this.playing) return this.pause();
    if (this.place === this.trace.steps.length - 1) this.jump(0);
    this.playing = setInterval(() => {
      this.jump(this.place + 1);
      if (this.place === this.trace.steps.length - 1 || !this.root.isConnected) this.pause();
    }, PLAY_EVERY);
    this.showPlay();
  }

  pause() {
    clearInterval(this.playing);
    this.playing = undefined;
    this.showPlay();
  }

  showPlay() {
    const { play } = this.buttons;
    const name = this.playing ? this.text?.pause : this.text?.play;
    play.classList.toggle("playing", Boolean(this.playing));
    if (name) play.setAttribute("aria-label", (play.title = name));
  }

  /** A key of the page; true if it was used. */
  key(event, path) {
    if (!this.trace) return false;
    const { key } = event;
    const grid = this.shown.find(({ box }) => path.includes(box));
    if (grid && path[0].dataset?.cell !== undefined && key !== " ") return this.cellKey(grid, key);
    const act = {
      ArrowRight: () => this.walk(1),
      ArrowLeft: () => this.walk(-1),
      Home: () => this.walk(-Infinity),
      End: () => this.walk(Infinity),
      " ": () => event.repeat || this.toggle(),
      Escape: this.pinned ? () => this.unpin() : undefined,
    }[key];
    act?.();
    return Boolean(act);
  }

  cellKey(grid, key) {
    if (key === "Escape") {
      this.unpin();
      this.root.focus({ preventScroll: true });
    } else if (key === "Enter") {
      this.pin(grid, grid.rove);
    } else {
      const cell = grid.next(grid.rove, key);
      grid.focus(...cell);
      this.activate(grid, cell, true);
    }
    return true;
  }

  // ── Drawing ───────────────────────────────────────────────────────────────────────────────────

  words() {
    const { text, buttons } = this;
    const label = (node, name) => node.setAttribute("aria-label", name);
    label(this.root, text.microscope);
    label(this.equation, text.equation);
    this.equation.setAttribute("role", "group");
    for (const name of ["previous", "next"]) label(buttons[name], (buttons[name].title = text[name]));
    this.showPlay();
    const key = (name) => element("kbd", { text: name });
    const hint = (word, ...keys) => element("span", {}, ...keys.map(key), word);
    this.hints.replaceChildren(
      hint(text.hint_step, "←", "→"),
      hint(text.hint_ends, "Home", "End"),
      hint(text.hint_play, text.space),
    );
  }

  resize(width) {
    const wide = Math.round(width);
    if (Math.abs(wide - this.width) < 2) return;
    this.width = wide;
    if (!this.trace) return;
    this.matrices.clear();
    this.render();
  }

  render() {
    const { trace, place } = this;
    const step = trace.steps[place];
    Object.assign(this.root.dataset, { step: place, steps: trace.steps.length, symbol: step.symbol });
    this.position.textContent = `${place + 1} / ${trace.steps.length}`;
    this.heading.replaceChildren(...headingOf(step));
    this.buttons.previous.disabled = place === 0;
    this.buttons.next.disabled = place === trace.steps.length - 1;
    this.rail.mark(place);
    this.layEquation(step);
    this.showPickers();
    this.rest();
  }

  layEquation(step) {
    const terms = step.equation?.length ? step.equation : [{ symbol: step.symbol }];
    const drawn = terms.filter(({ symbol }) => this.trace.places.has(symbol));
    const many = drawn.length;
    this.shown = [];
    const nodes = [];
    let operators = [];
    for (const term of terms) {
      if (term.operator !== undefined) {
        operators.push(term.operator);
        continue;
      }
      if (!this.trace.places.has(term.symbol)) continue;
      const grid = this.matrix(this.trace.step(term.symbol), step, term.transpose, many);
      this.shown.push(grid);
      nodes.push(element("div", { class: "term" }, operatorNode(operators), grid.box));
      operators = [];
    }
    nodes.push(...[operatorNode(operators)].filter(Boolean));
    this.result = this.shown.findLast(({ face }) => face.symbol === step.symbol);
    this.operands = step.reads.map((symbol, at) => {
      const same = this.shown.filter((grid) => grid !== this.result && grid.face.symbol === symbol);
      return same[step.reads.slice(0, at).filter((other) => other === symbol).length] ?? same[0];
    });
    for (const grid of this.shown) grid.box.classList.toggle("result", grid === this.result);
    this.equation.replaceChildren(...nodes);
    this.equation.classList.toggle("lone", many === 1);
  }

  // A matrix, drawn once per trace, look and pick: steps share most of theirs.
  matrix(of, step, transpose = false, many = 1) {
    const unfold = step.op.kind === "gather" && this.unfolds(step);
    const tint = step.tint ?? (unfold ? "h" : undefined);
    const narrow = this.width < 640;
    const room = narrow ? this.width - 60 : (this.width - 90 * many) / many;
    const side = Math.round(Math.min(360, Math.max(200, room)));
    const name = [of.symbol, transpose, unfold, tint, side, ...Object.values(this.pick)].join();
    if (!this.matrices.has(name)) {
      if (this.matrices.size > MOST_CACHED) this.matrices.clear();
      const face = new Face(this.trace, of, this.pick, { transpose, unfold });
      const { dims, labels } = this.trace.manifest;
      const { palette, text } = this;
      const ratio = window.devicePixelRatio || 1;
      this.matrices.set(name, drawMatrix(face, { palette, text, labels, dims, side, ratio, tint }));
    }
    const grid = this.matrices.get(name);
    grid.clear();
    grid.pin(null);
    return grid;
  }

  // All heads at once where a step is about how they lie, and there is room for them.
  unfolds(step) {
    return [step.symbol, ...step.reads].every((symbol) => {
      const of = this.trace.step(symbol);
      const face = of && new Face(this.trace, of, this.pick, { unfold: true });
      return face && face.rows <= MOST_UNFOLDED;
    });
  }

  flyIn() {
    const step = this.trace.steps[this.place];
    const [{ face, node } = {}] = this.operands;
    const { result } = this;
    if (step.op.kind !== "gather" || !node || [result, this.operands[0]].some((g) => g.mode !== "cells")) return;
    const pairs = [];
    for (let r = 0; r < result.face.rows; r += 1) {
      for (let c = 0; c < result.face.cols; c += 1) {
        const { sources } = explain(this.trace, step, result.face.index(r, c), this.text);
        const from = sources.length && face.find(sources[0].index);
        if (from) pairs.push([this.operands[0].node(...from), result.node(r, c)]);
      }
    }
    fly(pairs, [result.scroll]);
  }

  // ── Batch and head ────────────────────────────────────────────────────────────────────────────

  showPickers() {
    const { extents = {} } = this.trace.manifest;
    const still = new Set();
    for (const { face } of this.shown) {
      for (const axis of face.still.keys()) if (face.step.shape[axis] > 1) still.add(face.step.dims[axis]);
    }
    const wanted = [];
    if (extents.B > 1 && still.has("B")) wanted.push(["B", this.text.batch, extents.B, this.pick.B]);
    if (extents.h > 1 && still.has("h")) wanted.push(["h", this.text.head, extents.h, this.pick.h]);
    else if (extents.h > 1 && still.has("g")) {
      wanted.push(["g", this.text.key_head, this.trace.sizes.g, keyHead(this.trace, this.pick.h)]);
    }
    const state = JSON.stringify(wanted);
    if (state === this.pickersShown) return;
    this.pickersShown = state;
    const focused = this.pickers.contains(this.root.getRootNode().activeElement);
    this.pickers.replaceChildren(...wanted.map((one) => this.picker(...one)));
    if (focused) this.pickers.querySelector("select")?.focus();
  }

  picker(dim, name, size, chosen = 0) {
    const select = element("select", { "data-pick": dim, name: `pick-${dim}` });
    for (let i = 0; i < size; i += 1) {
      select.append(element("option", { value: i, text: `${i + 1} / ${size}` }));
    }
    select.value = String(chosen);
    select.addEventListener("change", () => this.choose(dim, Number(select.value)));
    return element("label", { class: "picker" }, element("span", { text: name }), select);
  }

  // The page has answered a wish for another head with what was there before.
  settlePick() {
    if (!this.root.hasAttribute("aria-busy")) return;
    this.root.removeAttribute("aria-busy");
    this.pickersShown = null;
    this.showPickers();
  }

  choose(dim, i) {
    const { h, g } = this.trace.sizes;
    const pick = { ...this.pick, ...(dim === "g" ? { h: (i * h) / g } : { [dim]: i }) };
    this.flush();
    this.send("pick", pick);
    if (!this.trace.whole) {
      this.root.setAttribute("aria-busy", "true"); // until the page has sent that slice
      return;
    }
    this.pick = pick;
    this.remember();
    this.render();
  }

  // ── Cells ─────────────────────────────────────────────────────────────────────────────────────

  cellAt(event) {
    const grid = this.shown?.find(({ box }) => box.contains(event.target));
    const cell = grid?.at(event);
    return cell && [grid, cell];
  }

  /** Show where a cell's number comes from. `spoken`: also to a screen reader. */
  activate(grid, cell, spoken = false) {
    for (const other of this.shown) other.clear();
    const index = grid.face.index(...cell);
    const value = grid.face.value(...cell);
    const name = cellName(grid.face.symbol, index);
    grid.mark([cell], "active");
    if (this.gradient) this.showDerivative(name, value);
    else if (grid !== this.result || grid.face.pooled) this.showValue(grid, name, value);
    else this.showArithmetic(grid, name, index, value);
    if (grid.tokened) this.arithmetic.append(element("div", { class: "note", text: grid.tokens(...cell) }));
    if (spoken) this.speak();
  }

  showArithmetic(grid, name, index, value) {
    const step = grid.face.step;
    const { pieces, note, sources } = explain(this.trace, step, index, this.text);
    this.operands.forEach((operand, read) => {
      const cells = sources.filter((source) => source.read === read).map((s) => operand?.face.find(s.index));
      operand?.mark(cells.filter(Boolean), `from from${read}`);
    });
    const line = [...start(name)];
    for (const [text, kind] of pieces ?? []) line.push(piece(text, kind));
    if (pieces?.length) line.push(piece(" = "));
    line.push(element("strong", { text: write(value) }));
    this.say(line, pieces ? note : this.text.click_for);
  }

  showValue(grid, name, value) {
    const words = grid.face.pooled ? this.text.pooled : "";
    const [rows, cols] = grid.face.pooled?.block ?? [];
    const note = [fill(words, { rows, cols }), words && this.text.click_for].filter(Boolean).join(" ");
    this.say([...start(name), element("strong", { text: write(value) })], note);
  }

  showDerivative(name, value) {
    const { symbol, index } = this.gradient;
    const target = symbol ? cellName(symbol, index ?? []) : "";
    this.say([...start(`∂${target}/∂${name}`), element("strong", { text: write(value) })], "");
  }

  say(line, note) {
    const parts = [element("div", { class: "line" }, ...line)];
    if (note) parts.push(element("div", { class: "note", text: note }));
    this.arithmetic.replaceChildren(...parts);
  }

  speak() {
    clearTimeout(this.speaking);
    const words = [...this.arithmetic.children].map((part) => part.textContent).join(". ");
    this.speaking = setTimeout(() => (this.live.textContent = words), SPEAK_AFTER);
  }

  // Nothing under the pointer: the focused or pinned cell is shown, else a hint.
  rest() {
    for (const grid of this.shown) grid.clear();
    const pinned = this.findPinned();
    for (const grid of this.shown) grid.pin(grid === pinned?.[0] ? pinned[1] : null);
    const focused = this.root.getRootNode().activeElement;
    const grid = this.shown.find(({ box }) => focused && box.contains(focused));
    if (grid && focused.dataset.cell !== undefined) this.activate(grid, grid.rove);
    else if (pinned) this.activate(...pinned);
    else this.say([], this.gradient && !this.gradient.symbol ? this.text.hint_target : this.text.hint_cell);
  }

  findPinned() {
    if (!this.pinned) return null;
    const order = [this.result, ...this.shown].filter(Boolean);
    const grid = order.find(({ face }) => face.symbol === this.pinned.symbol);
    const cell = grid?.face.find(this.pinned.index);
    return cell && grid.inside(...cell) ? [grid, cell] : null;
  }

  pin(grid, cell) {
    const chosen = { symbol: grid.face.symbol, index: grid.face.index(...cell) };
    if (JSON.stringify(chosen) === JSON.stringify(this.pinned)) return this.unpin();
    this.pinned = chosen;
    this.afterPin(chosen);
  }

  unpin() {
    if (!this.pinned) return;
    this.pinned = null;
    this.afterPin(null);
  }

  afterPin(cell) {
    const found = this.findPinned();
    for (const grid of this.shown) grid.pin(grid === found?.[0] ? found[1] : null);
    if (found) this.activate(...found, true);
    this.remember();
    this.flush();
    this.send("cell", cell);
  }

  dispose() {
    this.pause();
    clearTimeout(this.reporting);
    clearTimeout(this.speaking);
    this.observer.disconnect();
    mute(this);
    this.root.remove();
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

function headingOf(step) {
  const nodes = [symbolNode(step.symbol)];
  if (step.title && step.title !== step.symbol) nodes.push(` = ${step.title}`);
  return nodes;
}

const piece = (text, kind) => element("span", { class: kind === undefined ? null : `from${kind}`, text });
const start = (name) => [element("span", { class: "name", text: name }), piece(" = ")];

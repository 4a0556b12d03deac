// The microscope: one step of a trace as an equation of matrices, with the arithmetic of each cell.
//
// Streamlit calls `draw` again on every change of data or theme, without cleaning up in between, so
// there is one Microscope per root and `draw` only tells it what is new. The whole trace is in the
// browser: stepping, hovering and picking a head ask the server nothing. It is told afterwards.

import { explain } from "./arithmetic.js";
import { Palette } from "./colour.js";
import { Equation } from "./equation.js";
import { cellName, element, fill, symbolNode, write } from "./format.js";
import { listen, mute, prefer } from "./keys.js";
import { decode } from "./payload.js";
import { Pickers } from "./pickers.js";
import { Rail } from "./rail.js";
import { Trace } from "./trace.js";

const REPORT_AFTER = 150; // ms without a further step before the page is told
const CLICKED_AFTER = 60; // the same after a click on a cell
const PLAY_EVERY = 1500;
const SPEAK_AFTER = 350;
const RAPID = 250; // steps closer than this do not fly

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
    this.due = new Set(); // what the page is still to be told: "step", "cell"
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
    this.pickers = new Pickers((pick) => this.choose(pick));
    this.hints = element("div", { class: "hints" });
    this.rail = new Rail((place) => this.jump(place));
    this.equation = new Equation();
    this.arithmetic = element("div", { class: "arithmetic", "data-testid": "arithmetic" });
    this.live = element("div", { class: "unseen", "aria-live": "polite" });
    const { previous, play, next } = this.buttons;
    this.root.append(
      element(
        "div",
        { class: "bar-top" },
        element("div", { class: "buttons" }, previous, play, next),
        element("output", {}, this.position, this.heading), // read out on each step
        this.pickers.node,
        this.hints,
      ),
      this.rail.node,
      this.equation.node,
      this.arithmetic,
      this.live,
    );
    this.root.addEventListener("pointerdown", () => prefer(this));
    this.root.addEventListener("focusin", () => prefer(this));
    this.watchCells();
  }

  watchCells() {
    const on = (type, act) => this.equation.node.addEventListener(type, act);
    const hover = (event) => {
      const found = this.equation.cellAt(event);
      if (found) this.activate(...found);
    };
    on("pointerover", hover);
    // Within a picture the pointer moves from cell to cell without entering a new node.
    on("pointermove", (event) => event.target.tagName === "CANVAS" && hover(event));
    on("pointerleave", () => this.rest());
    on("focusin", (event) => {
      const found = this.equation.cellAt(event);
      if (found) this.activate(...found, true);
    });
    on("click", (event) => {
      const found = this.equation.cellAt(event);
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
    const said = JSON.stringify([data.id, data.text, data.step, data.cell, data.epoch]);
    const same = data.id !== undefined && said === this.said;
    if (same && sameLook) return this.settlePick();
    this.palette = palette;
    this.said = said;
    this.root.style.setProperty("--muted", palette.muted);
    this.equation.clear();
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
      this.due.clear();
      this.pause();
      this.place = clamp(resumed ? kept.place : data.step);
      this.pinned = (resumed ? kept.pinned : data.cell) ?? null;
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

  /** Tell the page soon: each report makes it run anew, so several in a row are told as one. */
  report(what = "step", after = REPORT_AFTER) {
    this.due.add(what);
    clearTimeout(this.reporting);
    this.reporting = setTimeout(() => this.flush(), after);
  }

  flush() {
    clearTimeout(this.reporting);
    if (this.due.delete("step")) this.send("step", (this.sent = this.place));
    if (this.due.delete("cell")) this.send("cell", this.pinned);
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
    if (!rapid) this.equation.fly();
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
    label(this.equation.node, text.equation);
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
    this.equation.clear();
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
    this.equation.lay(step, this);
    this.pickers.show(this.shown, this);
    this.rest();
  }

  get shown() {
    return this.equation.shown;
  }

  // Another batch item or head: at once if it is here, else once the page has sent it.
  choose(pick) {
    this.flush();
    this.send("pick", pick);
    if (!this.trace.whole) {
      this.root.setAttribute("aria-busy", "true");
      return;
    }
    this.pick = pick;
    this.remember();
    this.render();
  }

  // The page has answered a wish for another head with what was there before.
  settlePick() {
    if (!this.root.hasAttribute("aria-busy")) return;
    this.root.removeAttribute("aria-busy");
    this.pickers.show(this.shown, this, true);
  }

  // ── Cells ─────────────────────────────────────────────────────────────────────────────────────

  /** Show where a cell's number comes from. `spoken`: also to a screen reader. */
  activate(grid, cell, spoken = false) {
    for (const other of this.shown) other.clear();
    const index = grid.face.index(...cell);
    const value = grid.face.value(...cell);
    const name = cellName(grid.face.symbol, index);
    grid.mark([cell], "active");
    if (this.gradient) this.showDerivative(name, value);
    else if (grid !== this.equation.result || grid.face.pooled) this.showValue(grid, name, value);
    else this.showArithmetic(grid, name, index, value);
    if (grid.tokened) this.arithmetic.append(element("div", { class: "note", text: grid.tokens(...cell) }));
    if (spoken) this.speak();
  }

  showArithmetic(grid, name, index, value) {
    const step = grid.face.step;
    const { pieces, note, sources } = explain(this.trace, step, index, this.text);
    this.equation.operands.forEach((operand, read) => {
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

  // The pinned cell among the drawn ones; with gradients, the element that is derived.
  findPinned() {
    const { symbol, index } = (this.gradient?.symbol ? this.gradient : this.pinned) ?? {};
    return symbol ? this.equation.find({ symbol, index }) : null;
  }

  pin(grid, cell) {
    const chosen = { symbol: grid.face.symbol, index: grid.face.index(...cell) };
    if (JSON.stringify(chosen) === JSON.stringify(this.pinned)) return this.unpin();
    this.pinned = chosen;
    this.afterPin();
  }

  unpin() {
    if (!this.pinned) return;
    this.pinned = null;
    this.afterPin();
  }

  afterPin() {
    const found = this.findPinned();
    for (const grid of this.shown) grid.pin(grid === found?.[0] ? found[1] : null);
    if (found) this.activate(...found, true);
    this.remember();
    this.report("cell", CLICKED_AFTER);
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

function headingOf(step) {
  const nodes = [symbolNode(step.symbol)];
  if (step.title && step.title !== step.symbol) nodes.push(` = ${step.title}`);
  return nodes;
}

const piece = (text, kind) => element("span", { class: kind === undefined ? null : `from${kind}`, text });
const start = (name) => [element("span", { class: "name", text: name }), piece(" = ")];

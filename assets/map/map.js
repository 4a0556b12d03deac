// The whole map of a long sequence, from all of it down to one cell.
//
// The browser holds one picture of what is on screen and a small one of the whole. A zoom or a drag
// stretches what is there in the same frame and then asks the server for the new view; the answer is
// drawn at its own place, wherever the reader is by then. Streamlit calls `draw` again on every
// change of data or theme without cleaning up in between: there is one LongMap per root.

import { Palette, css } from "../microscope/colour.js";
import { element, fill, write } from "../microscope/format.js";
import { Gallery } from "./gallery.js";
import { watch } from "./gestures.js";
import { Minimap } from "./minimap.js";
import { Panel } from "./panel.js";
import { decode } from "./payload.js";
import { Picture } from "./picture.js";
import { rulers, whole } from "./rulers.js";
import { View } from "./view.js";

const LOST = 4000; // ms after which an answer is no longer waited for
const AGAIN = 350; // ms until a coarse picture is asked for again
const SPEAK_AFTER = 350;
const ADDRESS_AFTER = 250;
const MOST = 1024; // cells of a picture, each way
const NUMBER = [36, 15]; // px that a written number needs
const CURSOR = 16; // px from which on an arrow key moves by one cell

const sheet = new CSSStyleSheet();
const maps = new WeakMap();

export default function draw(component, style) {
  const { parentElement } = component;
  if (!sheet.cssRules.length) sheet.replaceSync(style);
  let map = maps.get(parentElement);
  if (!map?.root.isConnected) {
    map?.dispose();
    map = new LongMap(parentElement);
    maps.set(parentElement, map);
  }
  map.update(component);
  return () => map.dispose();
}

class LongMap {
  constructor(parent) {
    const sheets = (parent.getRootNode() ?? document).adoptedStyleSheets;
    if (!sheets.includes(sheet)) sheets.push(sheet);
    this.n = 0;
    this.build();
    parent.append(this.root);
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.stage);
  }

  build() {
    const button = (name, act) => {
      const made = element("button", { type: "button", class: `icon ${name}` });
      made.addEventListener("click", act);
      return made;
    };
    this.buttons = {
      closer: button("closer", () => this.zoom(2)),
      farther: button("farther", () => this.zoom(0.5)),
      whole: button("whole", () => this.home()),
    };
    const field = (name) => element("input", { type: "text", inputmode: "numeric", size: 7, name });
    this.fields = { i: field("i"), j: field("j") };
    this.labels = { i: element("span"), j: element("span") };
    this.goButton = element("button", { type: "submit", class: "go" });
    this.form = element(
      "form",
      { class: "go-to", novalidate: true },
      element("label", {}, this.labels.i, this.fields.i),
      element("label", {}, this.labels.j, this.fields.j),
      this.goButton,
    );
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.goTyped();
    });
    this.form.addEventListener("input", ({ target }) => target.setCustomValidity(""));
    this.status = element("p", { class: "status", "data-testid": "map-status" });
    this.canvas = element("canvas", { "aria-hidden": "true" });
    this.help = element("span", { class: "unseen", id: "map-help" });
    this.stage = element(
      "div",
      { class: "stage", tabindex: "0", role: "application", "aria-describedby": "map-help", "data-testid": "map-stage" },
      this.canvas,
    );
    this.readout = element("p", { class: "readout", "data-testid": "map-readout" });
    this.minimap = new Minimap((i, j) => this.moveTo(i, j));
    this.gallery = new Gallery((head) => this.ask({ head }));
    this.panel = new Panel((cell) => this.goto(cell));
    this.legend = element("div", { class: "legend", "data-testid": "map-legend" });
    this.live = element("div", { class: "unseen", "aria-live": "polite" });
    const { closer, farther, whole } = this.buttons;
    this.root = element(
      "section",
      { class: "longmap", "data-testid": "map" },
      this.gallery.node,
      element("div", { class: "bar-top" }, element("div", { class: "buttons" }, closer, farther, whole), this.form),
      element(
        "div",
        { class: "body" },
        element("div", { class: "left" }, this.stage, this.help, this.readout, this.legend, this.status),
        element("div", { class: "right" }, this.minimap.canvas, this.panel.node),
      ),
      this.live,
    );
    watch(this.stage, {
      box: () => this.box,
      zoom: (factor, x, y) => this.zoom(factor, x, y),
      full: () => this.view.isWhole,
      pan: (x, y) => this.pan(y * this.view.rows, x * this.view.cols),
      hover: (x, y) => this.hover(x, y),
      click: (x, y) => this.choose(x, y),
      descend: (x, y) => this.choose(x, y, true),
    });
    this.stage.addEventListener("keydown", (event) => this.key(event));
    for (const type of ["focus", "blur"]) this.stage.addEventListener(type, () => this.repaint());
  }

  // ── What Streamlit says ───────────────────────────────────────────────────────────────────────

  update(component) {
    this.send = component.setStateValue ?? (() => {});
    this.root.hidden = !component.data?.byteLength; // nothing to draw yet
    if (this.root.hidden) return;
    this.tellAddress();
    const data = decode(component.data);
    const palette = this.readPalette();
    const sameLook = palette.signature === this.palette?.signature;
    if (data.id === this.data?.id && sameLook) return;
    this.palette = palette;
    this.root.style.setProperty("--muted", palette.muted);
    this.root.style.setProperty("--scale", palette.gradient("unit"));
    this.adopt(data);
  }

  readPalette() {
    const { backgroundColor, color } = getComputedStyle(this.root);
    return new Palette(backgroundColor, getComputedStyle(this.stage).backgroundColor, color);
  }

  adopt(data) {
    const { palette } = this;
    const before = this.data;
    this.data = data;
    this.text = data.text;
    if (!this.view || this.view.S !== data.S || this.view.T !== data.T || data.epoch !== this.epoch) {
      this.view = new View(data.S, data.T).set(data.view);
      this.cursor = data.cell ? [data.cell.i, data.cell.j] : this.middle();
      this.epoch = data.epoch;
    }
    this.picture = new Picture(data.picture, data.levels, palette);
    this.overview = new Picture(data.overview, data.small, palette);
    if (data.gallery) this.gallery.fill(data.gallery, data.heads, { ...data, palette });
    this.gallery.mark(data.head, data.count);
    if (!before || before.text.map !== data.text.map) this.words();
    this.layout();
    this.panel.show({ cell: data.cell, row: data.row, text: data.text, key: `${data.text.map}${data.map}` });
    this.describe();
    this.repaint();
    if (this.pointer) this.hover(...this.pointer);
    if (data.n >= this.n) this.answered(data);
    const { cell } = data;
    const announced = cell ? `${cell.i},${cell.j},${cell.weight}` : "";
    if (before && cell && announced !== this.announced) {
      this.say(fill(this.text.spoken_cell, { i: whole(cell.i), j: whole(cell.j), weight: write(cell.weight) }));
    }
    this.announced = announced;
  }

  answered(data) {
    this.flying = false;
    clearTimeout(this.again);
    if (this.dirty) this.flush();
    else if (data.picture.pending) this.again = setTimeout(() => this.ask(), AGAIN);
  }

  words() {
    const { text } = this;
    for (const [name, button] of Object.entries(this.buttons)) {
      button.title = text[name];
      button.setAttribute("aria-label", text[name]);
    }
    this.root.setAttribute("aria-label", text.map);
    this.stage.setAttribute("aria-label", fill(text.stage, { S: whole(this.data.S), T: whole(this.data.T) }));
    this.help.textContent = text.help;
    for (const name of ["i", "j"]) this.labels[name].textContent = text[`field_${name}`];
    this.goButton.textContent = text.go;
  }

  // What is on screen, in words and for tests.
  describe() {
    const { data, root, text } = this;
    const { picture, cell } = data;
    const set = (name, value) => (value === null ? delete root.dataset[name] : (root.dataset[name] = value));
    set("picture", picture.rect.join());
    set("block", picture.block.join());
    set("shape", picture.shape.join());
    set("coarse", picture.coarse ?? "");
    set("numbers", data.numbers ? "1" : "");
    set("cell", cell ? `${cell.i},${cell.j}` : null);
    set("value", cell ? String(cell.weight) : null);
    const [rows, cols] = picture.block.map(whole);
    const one = picture.block[0] === 1 && picture.block[1] === 1;
    const said = one ? text.single : fill(text[`tile_${data.pool}`], { rows, cols });
    const coarse = { sample: text.coarse_sample, tiles: fill(text.coarse_tiles, { rows, cols }) }[picture.coarse];
    this.status.replaceChildren(said);
    if (coarse) this.status.append(" ", element("mark", { text: coarse }));
    const { kind, low, high } = picture.scale;
    this.legend.replaceChildren(
      element("span", { text: write(low, 2) }),
      element("span", { class: "bar", "aria-hidden": "true" }),
      element("span", { text: write(high, 2) }),
      element("span", { class: "kind", text: text[`scale_${kind}`] }),
      element("span", { class: "nothing", "aria-hidden": "true" }),
      element("span", { text: text.nothing }),
    );
  }

  // ── Size and paint ────────────────────────────────────────────────────────────────────────────

  get pixels() {
    const ratio = window.devicePixelRatio || 1;
    return [this.box.height, this.box.width].map((n) => Math.max(64, Math.min(MOST, Math.floor(n * ratio))));
  }

  /** Cells across after a descent: as many as have room for their numbers. */
  get near() {
    return Math.max(8, Math.min(16, Math.floor(this.box.width / (NUMBER[0] + 4))));
  }

  resize() {
    if (!this.view || Math.abs(this.stage.clientWidth - this.width) < 2) return;
    this.layout();
    this.repaint();
  }

  layout() {
    const width = (this.width = this.stage.clientWidth || 640);
    const [x, y] = [width < 420 ? 50 : 62, 26];
    const side = Math.max(120, Math.min(width - x - 1, 680, Math.max(320, window.innerHeight - 140)));
    this.box = { x, y, width: side, height: side };
    this.stage.style.height = `${side + y + 1}px`;
    const fits = this.pixels.every((n, axis) => Math.abs(n - this.data.pixels[axis]) < 2);
    if (!fits && this.fitted !== this.pixels.join()) this.ask();
    this.fitted = this.pixels.join();
  }

  /** Paint in the coming frame, once, whatever happens before it. */
  repaint() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      if (this.view) this.paint();
    });
  }

  paint() {
    const { canvas, box, view, palette, picture, data } = this;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [this.width, box.y + box.height + 1];
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.save();
    context.beginPath();
    context.rect(box.x, box.y, box.width, box.height);
    context.clip();
    this.ground(context, [0, 0, view.S, view.T]);
    this.overview.draw(context, view, box);
    this.ground(context, picture.rect);
    picture.draw(context, view, box);
    this.writeNumbers(context);
    this.marks(context);
    context.restore();
    context.strokeStyle = palette.muted;
    context.lineWidth = 1;
    context.strokeRect(box.x - 0.5, box.y - 0.5, box.width + 1, box.height + 1);
    // One finger scrolls the page while there is nothing to drag.
    this.stage.style.touchAction = view.isWhole ? "pan-y" : "none";
    const font = `11px ${getComputedStyle(this.root).fontFamily}`;
    rulers({ context, box, view, ink: palette.muted, font, tokens: data.tokens });
    const cell = data.cell ? [data.cell.i, data.cell.j] : null;
    this.minimap.draw(view, this.overview, cell, css(palette.ink), css(palette.ground));
    this.root.dataset.view = view.cells.join();
    this.root.dataset.rect = [view.i, view.j, view.rows, view.cols].join(); // with fractions
    if (this.painted !== data.n) {
      this.painted = data.n;
      this.root.dataset.painted = data.n;
      if (data.n === this.n && this.began) {
        this.root.dataset.took = (performance.now() - this.began).toFixed(1);
        this.began = undefined;
      }
    }
  }

  place([i, j, rows, cols]) {
    const { box, view } = this;
    const [perRow, perCol] = [box.height / view.rows, box.width / view.cols];
    return [box.x + (j - view.j) * perCol, box.y + (i - view.i) * perRow, cols * perCol, rows * perRow];
  }

  // Bare ground with hatching: what no weight covers.
  ground(context, rect) {
    const { palette } = this;
    if (this.hatched !== palette.signature) {
      const tile = element("canvas", { width: 6, height: 6 });
      const pen = tile.getContext("2d");
      pen.fillStyle = css(palette.ground);
      pen.fillRect(0, 0, 6, 6);
      pen.strokeStyle = palette.muted;
      pen.globalAlpha = 0.35;
      for (const shift of [-6, 0, 6]) {
        pen.beginPath();
        pen.moveTo(shift, 6);
        pen.lineTo(shift + 6, 0);
        pen.stroke();
      }
      this.hatch = context.createPattern(tile, "repeat");
      this.hatched = palette.signature;
    }
    context.fillStyle = this.hatch;
    context.fillRect(...this.place(rect));
  }

  writeNumbers(context) {
    const { view, box, data, palette, picture } = this;
    const [wide, high] = [box.width / view.cols, box.height / view.rows];
    if (wide >= 9 && picture.block[0] === 1) this.lines(context, wide, high);
    if (!data.numbers || wide < NUMBER[0] || high < NUMBER[1]) return;
    const [top, left, rows, cols] = data.numbers;
    context.font = `${Math.min(14, Math.max(10, wide / 4.6))}px ${getComputedStyle(this.root).fontFamily}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let r = 0; r < rows; r += 1) {
      for (let c = 0; c < cols; c += 1) {
        const level = picture.at(top + r, left + c);
        const value = data.values[r * cols + c];
        context.fillStyle = level ? palette.scales.unit[level - 1].ink : palette.muted;
        const [x, y, w, h] = this.place([top + r, left + c, 1, 1]);
        // As many digits as there is room for.
        const said = [4, 3, 2, 1].map((digits) => write(value, digits));
        const fits = said.find((text) => context.measureText(text).width < w - 4);
        if (fits) context.fillText(fits, x + w / 2, y + h / 2);
      }
    }
  }

  lines(context, wide, high) {
    const { view, box, palette } = this;
    context.strokeStyle = css(palette.ground);
    context.globalAlpha = 0.7;
    context.lineWidth = 1;
    context.beginPath();
    for (let j = Math.ceil(view.j); j < view.j + view.cols; j += 1) {
      const x = Math.round(box.x + (j - view.j) * wide) + 0.5;
      context.moveTo(x, box.y);
      context.lineTo(x, box.y + box.height);
    }
    for (let i = Math.ceil(view.i); i < view.i + view.rows; i += 1) {
      const y = Math.round(box.y + (i - view.i) * high) + 0.5;
      context.moveTo(box.x, y);
      context.lineTo(box.x + box.width, y);
    }
    context.stroke();
    context.globalAlpha = 1;
  }

  marks(context) {
    const { data, palette } = this;
    const frame = (rect, least, colour, width) => {
      let [x, y, w, h] = this.place(rect);
      if (w < least) [x, w] = [x - (least - w) / 2, least];
      if (h < least) [y, h] = [y - (least - h) / 2, least];
      context.lineWidth = width + 2;
      context.strokeStyle = css(palette.ground);
      context.strokeRect(x, y, w, h);
      context.lineWidth = width;
      context.strokeStyle = colour;
      context.strokeRect(x, y, w, h);
    };
    const accent = getComputedStyle(this.root).getPropertyValue("--accent");
    if (data.cell) frame([data.cell.i, data.cell.j, 1, 1], 11, accent, 2);
    if (this.stage.matches(":focus-visible")) frame(this.target(), 9, css(palette.ink), 1.5);
  }

  // ── What the reader does ──────────────────────────────────────────────────────────────────────

  middle() {
    const { view } = this;
    return [view.i + view.rows / 2, view.j + view.cols / 2].map(Math.floor);
  }

  // The map moved: what there is is drawn again at once, and the rest is asked for.
  moved() {
    this.began ??= performance.now();
    this.repaint();
    this.ask();
  }

  zoom(factor, x, y) {
    this.view.zoom(factor, x, y);
    this.keepCursor();
    this.moved();
  }

  pan(rows, cols) {
    this.view.pan(rows, cols);
    this.keepCursor();
    this.moved();
  }

  moveTo(i, j) {
    const { view } = this;
    view.set([i - view.rows / 2, j - view.cols / 2, view.rows, view.cols]);
    this.keepCursor();
    this.moved();
  }

  home() {
    this.view.whole();
    this.moved();
  }

  keepCursor() {
    const [i, j, rows, cols] = this.view.cells;
    const within = (at, from, size) => Math.min(from + size - 1, Math.max(from, at));
    this.cursor = [within(this.cursor[0], i, rows), within(this.cursor[1], j, cols)];
  }

  /** Choose a cell and, where it is out of sight, go there. */
  goto(cell, near = 0) {
    if (near || !this.view.shows(cell)) this.view.centre(cell, near || Infinity);
    this.cursor = cell;
    this.began ??= performance.now();
    this.repaint();
    this.ask({ cell, tile: undefined });
  }

  goTyped() {
    const limits = { i: this.data.S, j: this.data.T };
    const chosen = ["i", "j"].map((name) => {
      const field = this.fields[name];
      const typed = field.value.replace(/[,，\s]/g, "");
      const fits = /^\d+$/.test(typed) && Number(typed) < limits[name];
      field.setCustomValidity(fits ? "" : fill(this.text.field_range, { most: whole(limits[name] - 1) }));
      return fits ? Number(typed) : null;
    });
    const bad = ["i", "j"].find((_, at) => chosen[at] === null);
    if (bad) this.fields[bad].reportValidity();
    else this.goto(chosen, this.near);
  }

  cellAt(x, y) {
    const { view } = this;
    if (!(x >= 0 && x < 1 && y >= 0 && y < 1)) return null;
    return [Math.floor(view.i + y * view.rows), Math.floor(view.j + x * view.cols)];
  }

  // The tile (or cell) under the cursor: [i, j, rows, cols].
  target(cell = this.cursor) {
    const held = [this.picture, this.overview].find((one) => one.at(...cell) !== undefined);
    return held ? held.tile(...cell) : [...cell, 1, 1];
  }

  choose(x, y, descend = false) {
    const cell = this.cellAt(x, y);
    if (!cell) return;
    this.cursor = cell;
    this.pick(descend);
  }

  /** The cell under the cursor, or the largest of its tile, which the server knows. */
  pick(descend) {
    const tile = this.target();
    this.repaint();
    if (tile[2] === 1 && tile[3] === 1) {
      if (descend) return this.goto(tile.slice(0, 2), this.near);
      return this.ask({ cell: tile.slice(0, 2), tile: undefined });
    }
    this.ask({ tile, near: descend ? this.near : 0, cell: undefined });
  }

  hover(x, y) {
    this.pointer = x === undefined ? null : [x, y];
    const cell = x === undefined ? null : this.cellAt(x, y);
    this.readout.textContent = cell ? this.reading(cell) : "";
  }

  /** What the browser knows about a place: exact where numbers are held, else the colour's weight. */
  reading([i, j]) {
    const { data, text } = this;
    const exact = this.exact(i, j);
    if (exact !== undefined) {
      return fill(text.reading_exact, { i: whole(i), j: whole(j), weight: write(exact) });
    }
    const held = [this.picture, this.overview].find((one) => one.at(i, j) !== undefined);
    if (!held) return "";
    const [top, left, rows, cols] = held.tile(i, j);
    const weight = write(held.weight(held.at(i, j)), 2);
    if (rows === 1 && cols === 1) return fill(text.reading_cell, { i: whole(i), j: whole(j), weight });
    const span = { i0: whole(top), i1: whole(top + rows - 1), j0: whole(left), j1: whole(left + cols - 1) };
    return fill(text[`reading_${data.pool}`], { ...span, weight });
  }

  exact(i, j) {
    const { numbers, values } = this.data;
    if (!numbers) return undefined;
    const [r, c] = [i - numbers[0], j - numbers[1]];
    const inside = r >= 0 && c >= 0 && r < numbers[2] && c < numbers[3];
    return inside ? values[r * numbers[3] + c] : undefined;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrows = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const far = { PageUp: [-0.5, 0], PageDown: [0.5, 0] };
    const { key } = event;
    if (arrows[key]) this.step(arrows[key], event.shiftKey);
    else if (far[key]) this.pan(far[key][0] * this.view.rows, 0);
    else if (key === "+" || key === "=") this.zoomKey(2);
    else if (key === "-" || key === "_") this.zoomKey(0.5);
    else if (key === "Home") this.home();
    else if (key === "Enter") this.pick(true);
    else if (key === " ") this.pick(false);
    else if (key === "Escape" && this.data.cell) this.ask({ cell: null, tile: undefined });
    else return;
    event.preventDefault();
    event.stopPropagation();
    clearTimeout(this.speaking);
    this.speaking = setTimeout(() => this.say(this.reading(this.cursor)), SPEAK_AFTER);
  }

  zoomKey(factor) {
    const { view, cursor } = this;
    const share = (at, from, size) => (at + 0.5 - from) / size;
    this.zoom(factor, share(cursor[1], view.j, view.cols), share(cursor[0], view.i, view.rows));
    this.readout.textContent = this.reading(this.cursor);
  }

  /** An arrow: the cursor goes one cell where cells are large, else a part of the screen, and the
   * map with it as far as it goes. With Shift eight times as far. */
  step([down, right], fast) {
    const { view, box } = this;
    const along = (direction, size, length, all) => {
      const least = length / size >= CURSOR ? 1 : Math.max(1, Math.round(size / 32));
      return direction * least * (fast ? 8 : 1);
    };
    const [rows, cols] = [along(down, view.rows, box.height), along(right, view.cols, box.width)];
    const clamp = (at, all) => Math.min(all - 1, Math.max(0, at));
    this.cursor = [clamp(this.cursor[0] + rows, view.S), clamp(this.cursor[1] + cols, view.T)];
    const { i, j } = view;
    view.pan(rows, cols);
    this.keepCursor();
    if (view.i !== i || view.j !== j) this.moved();
    this.repaint();
    this.readout.textContent = this.reading(this.cursor);
  }

  say(text) {
    this.live.textContent = text;
  }

  // ── What the server is asked ──────────────────────────────────────────────────────────────────

  /** Ask for what is on screen; `more` says what was chosen since. */
  ask(more = {}) {
    if (Object.keys(more).length) this.wish = { ...this.wish, ...more };
    this.waiting ??= setTimeout(() => this.flush(), 0); // all that one event changes, at once
  }

  flush() {
    clearTimeout(this.waiting);
    this.waiting = undefined;
    // One question at a time: a later one waits for the answer, and then asks for where we are.
    if (this.flying && performance.now() - this.sentAt < LOST) {
      this.dirty = true;
      return;
    }
    this.dirty = false;
    this.flying = true;
    this.sentAt = performance.now();
    this.n += 1;
    this.n = Math.max(this.n, (this.data.n ?? 0) + 1);
    const { wish } = this;
    this.wish = undefined;
    const { map } = this.data;
    const look = { n: this.n, map, view: this.view.cells, pixels: this.pixels, gallery: this.gallery.id };
    this.send("look", wish ? { ...look, ...wish } : look);
  }

  /** The address says where the reader is; a move is no step of the browser's history. */
  tellAddress() {
    clearTimeout(this.telling);
    this.telling = setTimeout(() => {
      const { data, view } = this;
      const address = new URL(window.location.href);
      const say = (name, value) => {
        if (value) address.searchParams.set(name, value);
        else address.searchParams.delete(name);
      };
      say("at", !view.isWhole && view.cells.join());
      say("cell", data.cell && `${data.cell.i},${data.cell.j}`);
      say("head", data.head && String(data.head));
      if (address.href !== window.location.href) {
        window.history.replaceState(window.history.state, "", address);
      }
    }, ADDRESS_AFTER);
  }

  dispose() {
    this.observer.disconnect();
    for (const timer of [this.waiting, this.again, this.speaking, this.telling]) clearTimeout(timer);
    cancelAnimationFrame(this.frame);
    this.root.remove();
    this.frame = undefined;
  }
}

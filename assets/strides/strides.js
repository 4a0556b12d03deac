// Two tied pictures of one tensor: its elements as grids in grids, its storage as a strip.
// Receives the stages of a chain (pages/parts/strides.py); everything here follows from their
// shape, strides and offset. Sends back which stage is looked at, nothing else.

import { Board, make } from "./board.js";
import { addresses, indexAt, stripLayout, tensorLayout } from "./layout.js";

const sheet = new CSSStyleSheet();
sheet.replaceSync(await (await fetch(new URL("strides.css", import.meta.url))).text());

const views = new WeakMap(); // Streamlit calls again with each change: what is kept stays here
const LETTERS = ["i", "j", "k", "l", "m"];
const TRAIL = 24; // hops that stay in sight behind the walk
const TONES = 128;
const PALEST = 0.06; // share of the theme's own colour in the first cell of a storage
const still = window.matchMedia("(prefers-reduced-motion: reduce)");

export default function draw({ parentElement, data, setStateValue, setTriggerValue }) {
  if (!views.has(parentElement)) views.set(parentElement, new View(parentElement));
  const view = views.get(parentElement);
  view.receive(data, setStateValue, setTriggerValue);
  return () => view.leave();
}

/** "{a} of {b}" with its gaps filled. */
function fill(sentence, facts) {
  return sentence.replace(/\{(\w+)\}/g, (gap, name) => facts[name] ?? gap);
}

function tuple(numbers) {
  return numbers.length === 1 ? `(${numbers[0]},)` : `(${numbers.join(", ")})`;
}

function shown(value) {
  if (value === null) return "∞";
  return Math.abs(value) < 1e5 ? String(value) : value.toPrecision(3);
}

class View {
  constructor(root) {
    if (root instanceof ShadowRoot) root.adoptedStyleSheets = [sheet];
    this.root = make(root, "div", { class: "strides", "data-testid": "strides" });
    this.tableRoom = make(this.root, "div", { class: "scroll table", tabindex: "0" });
    this.facts = make(this.root, "ul", { class: "facts", "data-testid": "strides-facts" });
    this.tensorTitle = make(this.root, "h2");
    this.tensor = new Board(this.root, "element");
    this.sum = make(this.root, "div", { class: "sum", "data-testid": "strides-arithmetic" });
    this.bar = make(this.root, "div", { class: "bar" });
    this.stripTitle = make(this.root, "h2");
    this.strip = new Board(this.root, "address");
    this.walkNote = make(this.root, "p", { class: "note", "data-testid": "strides-walk" });
    this.live = make(this.root, "div", { class: "unseen", "aria-live": "polite" });
    this.pin = null; // what stays lit when the pointer leaves: { element } or { address }
    this.#controls();
    this.#listen();
    this.resized = new ResizeObserver(() => this.#resize());
    this.resized.observe(this.root);
  }

  receive(data, setStateValue, setTriggerValue) {
    Object.assign(this, { setStateValue, setTriggerValue });
    this.palette = readPalette(this.root);
    // Streamlit sends everything again after any change on the page: draw only what is new.
    const seen = data.manifest + data.text + this.palette.key;
    if (seen === this.seen) return;
    this.seen = seen;
    const manifest = JSON.parse(data.manifest);
    const fresh = manifest.key !== this.manifest?.key;
    Object.assign(this, { manifest, text: JSON.parse(data.text) });
    this.root.dataset.stages = manifest.stages.length;
    if (fresh) {
      this.stage = Math.min(manifest.stage, manifest.stages.length - 1);
      this.pin = null;
    }
    this.#label();
    this.#drawTable();
    this.#drawStage();
    this.root.dataset.key = manifest.key;
  }

  leave() {
    this.#pause();
    this.resized.disconnect();
    clearTimeout(this.report);
  }

  // --- the parts ---------------------------------------------------------------------------------

  #controls() {
    this.play = make(this.bar, "button", { type: "button", "data-testid": "strides-play" });
    this.speedLabel = make(this.bar, "label");
    this.speedName = make(this.speedLabel, "span");
    // Powers of two: 1 to 1024 elements a second.
    const range = { type: "range", min: "0", max: "10", step: "1", value: "2" };
    this.speed = make(this.speedLabel, "input", { ...range, "data-testid": "strides-speed" });
    this.speedValue = make(this.speedLabel, "span");
    this.progress = make(this.bar, "span", { class: "progress", "data-testid": "strides-progress" });
    this.play.addEventListener("click", () => this.#toggle());
    this.speed.addEventListener("input", () => this.#label());
  }

  #label() {
    const { text } = this;
    const rate = 2 ** Number(this.speed.value);
    this.play.textContent = this.playing ? `❚❚ ${text.pause}` : `▶ ${text.play}`;
    this.speedName.textContent = text.speed;
    this.speedValue.textContent = fill(text.rate, { rate });
    this.speed.setAttribute("aria-valuetext", this.speedValue.textContent);
    this.tableRoom.setAttribute("aria-label", text.table);
    this.tableRoom.setAttribute("role", "region");
  }

  #drawTable() {
    const { manifest, text } = this;
    const table = make(null, "table");
    make(table, "caption", { class: "unseen" }, text.table);
    const head = make(make(table, "thead"), "tr");
    for (const column of text.columns) make(head, "th", { scope: "col" }, column);
    head.lastChild.replaceChildren(make(null, "span", { class: "unseen" }, text.columns.at(-1)));
    const body = make(table, "tbody");
    manifest.stages.forEach((stage, place) => this.#row(body, stage, place));
    manifest.unreached.forEach((operation, after) => {
      const place = manifest.stages.length + after;
      const row = make(body, "tr", { class: "failed" });
      make(row, "td", { class: "number" }, String(place));
      make(row, "th", { scope: "row" }, operation);
      const words = after ? text.unreached : text.refused;
      make(row, "td", { colspan: String(text.columns.length - 3) }, words);
      this.#remover(row, operation, place);
    });
    this.rows = [...body.querySelectorAll("tr[data-stage]")];
    const kept = this.tableRoom.scrollLeft;
    this.tableRoom.replaceChildren(table);
    this.tableRoom.scrollLeft = kept;
  }

  #row(body, stage, place) {
    const { text } = this;
    const row = make(body, "tr", { "data-stage": String(place) });
    make(row, "td", { class: "number" }, String(place));
    const button = make(make(row, "th", { scope: "row" }), "button", { type: "button" }, stage.operation || text.start);
    if (stage.symbol) make(button, "span", { class: "symbol" }, stage.symbol);
    this.#shapeCell(make(row, "td"), stage);
    make(row, "td", { class: "number" }, tuple(stage.strides));
    make(row, "td", { class: "number" }, String(stage.offset));
    make(row, "td", {}, this.#contiguity(stage));
    make(row, "td", {}, this.#origin(stage));
    make(row, "td", { class: "number" }, `${stage.viewBytes} / ${stage.storageBytes}`);
    if (place) this.#remover(row, stage.operation, place);
    else make(row, "td");
    row.addEventListener("click", () => this.#choose(place));
  }

  #remover(row, operation, place) {
    const name = fill(this.text.remove, { operation });
    const button = make(make(row, "td", { class: "tight" }), "button", {
      type: "button", class: "remove", title: name, "aria-label": name,
    }, "×");
    button.addEventListener("click", (event) => {
      event.stopPropagation();
      this.setTriggerValue("remove", place - 1);
    });
  }

  #shapeCell(cell, stage) {
    if (!stage.dims.length) {
      cell.className = "number";
      cell.textContent = tuple(stage.shape);
      return;
    }
    const list = make(cell, "span", { class: "dims" });
    stage.shape.forEach((size, dim) => {
      const { symbol, name, colour } = stage.dims[dim];
      const part = make(list, "span", { class: "dim", title: name });
      make(part, "span", { class: "number" }, String(size));
      make(part, "span", { class: "symbol" }, symbol);
      part.style.borderColor = colour || "transparent";
    });
  }

  #contiguity(stage) {
    if (stage.contiguous) return this.text.yes;
    const { dim, stride, inner, innerStride, innerSize } = stage.breaks[0];
    const needed = inner === null ? "1" : `${innerStride}·${innerSize}`;
    return fill(this.text.no, { dim, rule: `${stride} ≠ ${needed}` });
  }

  #origin(stage) {
    const letter = String.fromCharCode(65 + stage.storage);
    if (!stage.operation) return letter;
    return `${letter} · ${stage.shares ? this.text.same : this.text.copy}`;
  }

  #drawFacts() {
    const { text, now } = this;
    const lines = [];
    for (const rule of now.breaks) {
      const expected = rule.innerStride * rule.innerSize;
      lines.push(fill(rule.inner === null ? text.breakLast : text.breakAt, { ...rule, expected }));
    }
    const ones = now.shape.filter((size) => size === 1).length;
    if (now.contiguous) lines.push(ones ? text.holdsOnes : text.holds);
    if (now.operation) lines.push(fill(now.shares ? text.sameFact : text.copyFact, now));
    if (now.startBytes) lines.push(fill(text.starts, now));
    if (now.touched < now.elements) lines.push(fill(text.fewer, now));
    else if (now.touched < this.cells.length) {
      lines.push(fill(text.part, { ...now, cells: this.cells.length }));
    }
    this.facts.replaceChildren();
    for (const line of lines) make(this.facts, "li", {}, line);
  }

  #drawStage() {
    const { manifest, text } = this;
    this.#pause();
    this.now = manifest.stages[this.stage];
    this.cells = manifest.storages[this.now.storage];
    this.at = addresses(this.now);
    this.root.dataset.stage = this.stage;
    this.rows.forEach((row, place) => {
      row.classList.toggle("chosen", place === this.stage);
      row.querySelector("button").setAttribute("aria-pressed", String(place === this.stage));
    });
    this.#drawFacts();
    const letter = String.fromCharCode(65 + this.now.storage);
    const facts = { shape: tuple(this.now.shape), letter, cells: this.cells.length };
    this.tensorTitle.textContent = fill(text.tensor, facts);
    this.stripTitle.textContent = fill(text.storage, facts);
    this.#drawBoards();
    const jumps = this.at.reduce((all, to, n) => all + (n > 0 && to !== this.at[n - 1] + 1), 0);
    const hops = this.at.length - 1;
    this.walkNote.textContent = fill(jumps ? text.jumps : text.straight, { hops, jumps });
    this.progress.textContent = "";
    this.walked = 0;
    if (this.pin?.element >= this.at.length || this.pin?.address >= this.cells.length) this.pin = null;
    this.#show(this.pin);
  }

  #drawBoards() {
    const { text, now, cells, at } = this;
    const room = Math.max(200, this.root.clientWidth - 4);
    this.width = this.root.clientWidth;
    const read = new Set(at);
    const tones = this.palette.ramp(cells.length);
    const within = (now.shape.at(-1) ?? 1) * (now.shape.length > 1 ? now.shape.at(-2) : 1);
    const columns = now.shape.at(-1) ?? 1;
    this.tensor.paint(tensorLayout(now.shape, room), {
      label: fill(text.tensorHelp, { shape: tuple(now.shape) }),
      ink: this.palette.ink,
      tone: (n) => tones(at[n]),
      text: (n) => shown(cells[at[n]]),
      name: (n) => `[${indexAt(n, now.shape).join(", ")}]: ${shown(cells[at[n]])}`,
      group: (n) => Math.floor(n / within),
      row: (n) => Math.floor(n / columns),
    });
    const strip = stripLayout(cells.length, now.strides, room);
    this.strip.paint(strip, {
      label: fill(text.stripHelp, { cells: cells.length }),
      ink: this.palette.ink,
      tone: (n) => (read.has(n) ? tones(n) : null), // no tone: no element reads it
      text: (n) => shown(cells[n]),
      name: (n) => fill(text.cell, { address: n, value: shown(cells[n]) }),
      group: () => 0,
      row: (n) => Math.floor(n / strip.columns),
    });
  }

  #resize() {
    if (!this.now || Math.abs(this.root.clientWidth - this.width) < 2) return;
    this.#drawBoards();
    this.#show(this.pin);
  }

  // --- what the reader does ----------------------------------------------------------------------

  #listen() {
    for (const board of [this.tensor, this.strip]) {
      const { surface, kind } = board;
      const target = (event) => {
        const n = board.hit(event);
        return n < 0 ? null : { [kind]: n };
      };
      surface.addEventListener("pointermove", (event) => {
        if (!this.playing && event.pointerType !== "touch") this.#show(target(event) ?? this.pin);
      });
      surface.addEventListener("pointerleave", () => !this.playing && this.#show(this.pin));
      surface.addEventListener("click", (event) => this.#fix(target(event)));
      surface.addEventListener("focus", () => {
        if (!this.playing && !(kind in (this.pin ?? {}))) this.#fix({ [kind]: this.#near(kind) });
      });
    }
    this.root.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Where the other picture begins when the keyboard comes to it: at the cell that is lit now. */
  #near(kind) {
    if (this.pin === null) return kind === "element" ? 0 : this.at[0];
    const found = kind === "address" ? this.at[this.pin.element] : this.at.indexOf(this.pin.address);
    return Math.max(0, found);
  }

  #choose(place) {
    if (place === this.stage) return;
    this.stage = place;
    this.#drawStage();
    clearTimeout(this.report);
    // Counted, as Streamlit does not report a value that it has already.
    this.picks = (this.picks ?? Date.now()) + 1;
    this.report = setTimeout(() => this.setStateValue("stage", [place, this.picks]), 150);
  }

  #fix(pin) {
    this.#pause();
    this.pin = pin;
    this.#show(pin);
    this.live.textContent = this.spoken;
  }

  #key(event) {
    const onBoard = event.target.dataset?.board;
    const control = ["BUTTON", "INPUT"].includes(event.target.tagName);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === " " && !control) this.#toggle();
    else if (event.key === "Escape") this.#clear();
    else if (onBoard && this.#move(onBoard, event.key)) return void event.preventDefault();
    else return;
    event.preventDefault();
  }

  #clear() {
    this.walked = 0;
    this.strip.forget();
    this.progress.textContent = "";
    this.#fix(null);
  }

  /** Arrows go along the last two dims and on into the next matrix; Page keys go along the third
   * last. In the strip: along it, and by its rows. */
  #move(kind, key) {
    const board = kind === "element" ? this.tensor : this.strip;
    const columns = kind === "element" ? (this.now.shape.at(-1) ?? 1) : board.layout.columns;
    const matrix = columns * (kind === "element" ? (this.now.shape.at(-2) ?? 1) : 1);
    const last = board.layout.count - 1;
    const from = this.pin?.[kind] ?? this.#near(kind);
    const step = {
      ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns,
      PageDown: matrix, PageUp: -matrix, Home: -from, End: last - from,
    }[key];
    if (step === undefined) return false;
    const to = from + step;
    if (to >= 0 && to <= last) {
      this.#fix({ [kind]: to });
      board.reveal(to);
    }
    return true;
  }

  // --- lighting and arithmetic -------------------------------------------------------------------

  /** Light an element and its cell, or a cell and the elements that read it; null for none. */
  #show(target) {
    const { root } = this;
    delete root.dataset.element;
    delete root.dataset.address;
    this.spoken = "";
    if (!target) {
      this.tensor.light([]);
      this.strip.light([]);
      this.sum.replaceChildren(make(null, "p", { class: "note" }, this.text.prompt));
      return;
    }
    const address = target.address ?? this.at[target.element];
    const readers = [];
    this.at.forEach((cell, n) => cell === address && readers.push(n));
    const element = target.element ?? readers[0];
    const first = target.element === undefined ? readers : [element, ...readers.filter((n) => n !== element)];
    this.tensor.light(first);
    this.strip.light([address]);
    root.dataset.address = address;
    if (element === undefined) this.#unread(address);
    else this.#arithmetic(element, address, readers.length);
  }

  #unread(address) {
    this.spoken = fill(this.text.unread, { address });
    this.sum.replaceChildren(make(null, "p", {}, this.spoken));
  }

  #arithmetic(element, address, readers) {
    const { now, text, sum, root } = this;
    const index = indexAt(element, now.shape);
    root.dataset.element = index.join(",");
    const value = shown(this.cells[address]);
    sum.replaceChildren();
    const where = make(sum, "p", { class: "where" });
    make(where, "span", { class: "number" }, fill(text.element, { index: index.join(", "), value }));
    const line = make(sum, "p", { class: "line number" });
    if (now.offset || !index.length) this.#term(line, String(now.offset), text.offset);
    index.forEach((at, dim) => {
      if (line.childNodes.length) line.append(" + ");
      const { symbol, colour } = now.dims[dim] ?? {};
      const under = symbol ? `${symbol}·s${"₀₁₂₃₄"[dim]}` : `${LETTERS[dim]}·s${"₀₁₂₃₄"[dim]}`;
      this.#term(line, `${at}·${now.strides[dim]}`, under, colour);
    });
    line.append(" = ");
    this.#term(line, String(address), text.address);
    if (readers > 1) make(sum, "p", { class: "note" }, fill(text.shared, { readers, address }));
    this.spoken = `${where.textContent}. ${this.#written(index, address)}`;
    root.dataset.sum = this.#written(index, address);
  }

  #written(index, address) {
    const { now } = this;
    const terms = index.map((at, dim) => `${at}·${now.strides[dim]}`);
    if (now.offset || !terms.length) terms.unshift(String(now.offset));
    return `${terms.join(" + ")} = ${address}`;
  }

  #term(line, number, name, colour) {
    const term = make(line, "span", { class: "term" });
    make(term, "b", {}, number);
    make(term, "small", { "aria-hidden": "true" }, name);
    if (colour) term.style.borderColor = colour;
  }

  // --- the walk ----------------------------------------------------------------------------------

  #toggle() {
    if (this.playing) return this.#pause();
    if (!this.walked || this.walked >= this.at.length - 1) {
      this.strip.forget();
      this.walked = 0;
    }
    if (still.matches) return this.#walkTo(this.at.length - 1); // the whole path, without moving
    this.playing = true;
    this.#label();
    this.#walkTo(this.walked);
    let before = performance.now();
    let owed = 0;
    const frame = (now) => {
      if (!this.playing) return;
      owed += ((now - before) / 1000) * 2 ** Number(this.speed.value);
      before = now;
      const steps = Math.max(0, Math.floor(owed)); // the first frame may lie before the click
      owed -= steps;
      if (steps) this.#walkTo(Math.min(this.walked + steps, this.at.length - 1));
      if (this.walked >= this.at.length - 1) this.#pause();
      else this.frame = requestAnimationFrame(frame);
    };
    this.frame = requestAnimationFrame(frame);
  }

  #walkTo(n) {
    const { at, text } = this;
    const from = this.playing ? Math.max(0, n - TRAIL) : 0;
    this.strip.path(at.subarray(from, n + 1), this.playing);
    this.walked = n;
    this.pin = { element: n };
    this.#show(this.pin);
    this.tensor.reveal(n);
    this.strip.reveal(at[n]);
    const move = n ? at[n] - at[n - 1] : 0;
    const facts = { n: n + 1, all: at.length, move: move < 0 ? `−${-move}` : `+${move}` };
    this.progress.textContent = fill(n ? text.progress : text.begins, { ...facts, address: at[n] });
    this.root.dataset.walked = n;
  }

  #pause() {
    cancelAnimationFrame(this.frame);
    if (!this.playing) return;
    this.playing = false;
    this.#label();
    this.live.textContent = this.spoken;
  }
}

// --- colour ----------------------------------------------------------------------------------------

/** A cell's tone tells its address: pale at the start of the storage, full at its end. So the tensor
 * shows without any pointing where its elements come from. */
function readPalette(root) {
  const style = getComputedStyle(root);
  const colour = (name, fallback) => rgb(style.getPropertyValue(name) || fallback);
  const ground = colour("--st-background-color", "#ffffff");
  const ink = colour("--st-text-color", "#16292e");
  const full = colour("--st-primary-color", "#0f6674");
  let fullest = 0.85; // or less, so that the numbers stay readable on every cell
  while (fullest > 0.2 && contrast(blend(ground, full, fullest), ink) < 4.8) fullest -= 0.02;
  const tones = Array.from({ length: TONES }, (_, n) => {
    const share = PALEST + ((fullest - PALEST) * n) / (TONES - 1);
    return `rgb(${blend(ground, full, share)})`;
  });
  root.dataset.ground = light(ground) > 0.4 ? "light" : "dark";
  return {
    key: [ground, ink, full].join("/"),
    ink: `rgb(${ink})`,
    ramp: (count) => (n) => tones[count < 2 ? 0 : Math.round((n * (TONES - 1)) / (count - 1))],
  };
}

function blend(from, to, share) {
  return from.map((part, at) => Math.round(part + (to[at] - part) * share));
}

function rgb(text) {
  const pen = make(null, "canvas").getContext("2d");
  pen.fillStyle = text.trim();
  pen.fillRect(0, 0, 1, 1);
  return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
}

function light(colour) {
  const [r, g, b] = colour.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one, other) {
  const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

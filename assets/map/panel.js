// Beside the map: what is under the pointer, the row of the chosen query, the arithmetic of the
// chosen cell. All of it comes exact from the server; here it is only laid out.

import { element, factor, fill, write } from "../microscope/format.js";
import { whole } from "./rulers.js";

const TERMS = 4; // products written out before the rest is folded

export class Panel {
  constructor(go) {
    this.go = go;
    this.row = element("section", { "data-testid": "map-row" });
    this.cell = element("section", { "data-testid": "map-cell" });
    this.node = element("div", { class: "facts" }, this.cell, this.row);
  }

  show({ cell, row, text, key }) {
    const said = JSON.stringify([cell, row, key]);
    if (said === this.said) return;
    this.said = said;
    this.text = text;
    this.cell.replaceChildren(...(cell ? this.arithmetic(cell) : [note(text.choose)]));
    this.row.replaceChildren(...(row ? this.strongest(row) : []));
    this.row.hidden = !row;
  }

  // ── One cell ──────────────────────────────────────────────────────────────────────────────────

  arithmetic({ i, j, q, k, products, raw, scale, scaled, capped, softcap, visible, lse, weight, names }) {
    const { text } = this;
    const term = (c) => [mark(factor(q[c]), "first"), "·", mark(factor(k[c]), "second")];
    const count = products.length;
    const shown = count <= TERMS + 1 ? products.map((_, c) => c) : [...Array(TERMS).keys()];
    const sum = shown.flatMap((c, place) => [place ? " + " : "", ...term(c)]);
    if (shown.length < count) sum.push(` + … (${count - shown.length})`);
    const lines = [
      line(`${text.product} = `, ...sum, ` = ${write(raw)}`),
      line(`${text.scaled} = ${factor(raw)}·${write(scale)} = ${write(scaled)}`),
    ];
    if (softcap) {
      lines.push(line(`${text.capped} = ${write(softcap)}·tanh(${write(scaled)} / ${write(softcap)}) = ${write(capped)}`));
    }
    const score = softcap ? capped : scaled;
    const share = visible
      ? [sup("e", write(score)), " / ", sup("e", write(lse)), ` = `, element("strong", { text: write(weight) })]
      : [element("strong", { text: write(weight) })];
    lines.push(line(`${text.weight} = `, ...share));
    lines.push(note(visible ? fill(text.lse, { lse: write(lse) }) : text.hidden));
    const title = element("h3", {
      text: fill(text.cell, { i: whole(i), j: whole(j) }) + (names ? ` · ${names[0]} → ${names[1]}` : ""),
    });
    return [title, ...lines, this.terms(q, k, products)];
  }

  terms(q, k, products) {
    const { text } = this;
    const rows = products.map((product, c) =>
      element(
        "tr",
        {},
        element("th", { scope: "row", text: String(c) }),
        element("td", { text: write(q[c]) }),
        element("td", { text: write(k[c]) }),
        element("td", { text: write(product) }),
      ),
    );
    const head = ["c", "q", "k", "q·k"].map((text) => element("th", { scope: "col", text }));
    const table = element(
      "table",
      {},
      element("thead", {}, element("tr", {}, ...head)),
      element("tbody", {}, ...rows),
    );
    const name = fill(text.terms, { count: products.length });
    const scroll = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name }, table);
    const folded = element("details", {}, element("summary", { text: name }), scroll);
    folded.open = this.unfolded ?? false;
    folded.addEventListener("toggle", () => (this.unfolded = folded.open));
    return folded;
  }

  // ── One row ───────────────────────────────────────────────────────────────────────────────────

  strongest({ i, name, entropy, effective, keys, total }) {
    const { text } = this;
    const title = element("h3", { text: fill(text.row, { i: whole(i) }) + (name ? ` · ${name}` : "") });
    if (!keys.length) return [title, note(text.blind)];
    const facts = fill(text.entropy, { entropy: write(entropy), effective: write(effective) });
    const rows = keys.map(({ j, weight, name: word }, place) => {
      const button = element("button", { type: "button", text: whole(j) });
      button.setAttribute("aria-label", fill(text.go_key, { j: whole(j) }));
      button.addEventListener("click", () => this.go([i, j]));
      const bar = element("span", { class: "bar", "aria-hidden": "true" });
      bar.style.width = `${100 * Math.min(1, weight)}%`;
      return element(
        "tr",
        {},
        element("td", { text: String(place + 1) }),
        element("th", { scope: "row" }, button, word ? element("span", { class: "token", text: word }) : null),
        element("td", { class: "weight", "data-weight": weight }, bar, element("span", { text: write(weight) })),
      );
    });
    const head = ["#", text.key, text.weight_of].map((text) => element("th", { scope: "col", text }));
    const table = element(
      "table",
      { class: "strongest" },
      element("caption", { text: fill(text.strongest, { count: keys.length, total: write(100 * total, 3) }) }),
      element("thead", {}, element("tr", {}, ...head)),
      element("tbody", {}, ...rows),
    );
    return [title, note(facts), table];
  }
}

const line = (...parts) => element("p", { class: "line" }, ...parts);
const note = (text) => element("p", { class: "note", text });
const mark = (text, kind) => element("span", { class: kind, text });
const sup = (base, text) => element("span", {}, base, element("span", { class: "unseen", text: "^" }), element("sup", { text }));

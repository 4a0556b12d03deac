// All heads side by side, small: under the largest-weight pooling no needle of any head is lost.

import { element, fill } from "../microscope/format.js";
import { Picture } from "./picture.js";

const SIDE = 112; // px of a thumbnail, as many as it has tiles at most

export class Gallery {
  constructor(choose) {
    this.choose = choose;
    this.node = element("div", { class: "gallery", role: "group", "data-testid": "map-heads" });
  }

  /** Draw what came: `about` {id, shape, block, scale, count}, `levels` of all heads. */
  fill(about, levels, { text, palette, S, T }) {
    const said = [about.id, text.head, palette.signature].join();
    if (said === this.said) return;
    this.said = said;
    this.id = about.id;
    this.node.setAttribute("aria-label", text.heads);
    const area = about.shape[0] * about.shape[1];
    this.buttons = Array.from({ length: about.count }, (_, head) => {
      const part = levels.subarray(head * area, (head + 1) * area);
      const picture = new Picture({ ...about, rect: [0, 0, S, T], coarse: null }, part, palette);
      const canvas = element("canvas", { width: SIDE, height: SIDE, "aria-hidden": "true" });
      const all = { i: 0, j: 0, rows: S, cols: T };
      picture.draw(canvas.getContext("2d"), all, { x: 0, y: 0, width: SIDE, height: SIDE });
      const name = element("span", { text: fill(text.head, { head: head + 1 }) });
      const button = element("button", { type: "button", "data-head": head }, canvas, name);
      button.addEventListener("click", () => this.choose(head));
      return button;
    });
    this.node.replaceChildren(...this.buttons);
  }

  mark(head, heads) {
    this.node.hidden = heads === 1;
    this.buttons?.forEach((button, at) => button.setAttribute("aria-pressed", String(at === head)));
    const chosen = this.buttons?.[head];
    if (!chosen || chosen === this.chosen) return;
    this.chosen = chosen;
    this.node.scrollLeft = chosen.offsetLeft - (this.node.clientWidth - chosen.offsetWidth) / 2;
  }
}

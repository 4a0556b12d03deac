// The choice of batch item and head, shown where a drawn tensor has more than one.

import { element } from "./format.js";
import { keyHead } from "./trace.js";

export class Pickers {
  /** `choose(pick)` is called with the whole new pick. */
  constructor(choose) {
    this.node = element("div", { class: "pickers" });
    this.choose = choose;
  }

  /** Offer what the drawn matrices leave open. `again`: even if it was offered before. */
  show(shown, { trace, pick, text }, again = false) {
    const wanted = openDims(shown, trace, pick, text);
    const state = JSON.stringify(wanted);
    if (state === this.state && !again) return;
    this.state = state;
    const focused = this.node.contains(this.node.getRootNode().activeElement);
    this.node.replaceChildren(
      ...wanted.map(({ dim, name, size, at }) => this.select(dim, name, size, at, trace, pick)),
    );
    if (focused) this.node.querySelector("select")?.focus();
  }

  select(dim, name, size, at, trace, pick) {
    const select = element("select", { "data-pick": dim, name: `pick-${dim}` });
    for (let i = 0; i < size; i += 1) {
      select.append(element("option", { value: i, text: `${i + 1} / ${size}` }));
    }
    select.value = String(at);
    const { h, g } = trace.sizes;
    select.addEventListener("change", () => {
      const i = Number(select.value);
      // A key/value head is chosen by the first query head that reads it.
      this.choose({ ...pick, ...(dim === "g" ? { h: (i * h) / g } : { [dim]: i }) });
    });
    return element("label", { class: "picker" }, element("span", { text: name }), select);
  }
}

function openDims(shown, trace, pick, text) {
  const { extents = {} } = trace.manifest;
  const still = new Set(
    shown.flatMap(({ face }) =>
      [...face.still.keys()].filter((axis) => face.step.shape[axis] > 1).map((axis) => face.step.dims[axis]),
    ),
  );
  const wanted = [];
  const offer = (dim, name, size, at = 0) => wanted.push({ dim, name, size, at });
  if (extents.B > 1 && still.has("B")) offer("B", text.batch, extents.B, pick.B);
  if (extents.h > 1 && still.has("h")) offer("h", text.head, extents.h, pick.h);
  else if (extents.h > 1 && still.has("g")) {
    offer("g", text.key_head, trace.sizes.g, keyHead(trace, pick.h ?? 0));
  }
  return wanted;
}

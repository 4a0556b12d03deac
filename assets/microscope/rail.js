// The row of steps: one small button per symbol, grouped by stage.

import { element, symbolNode } from "./format.js";

export class Rail {
  constructor(jump) {
    this.node = element("nav", { class: "rail" });
    this.chips = [];
    this.node.addEventListener("click", (event) => {
      const chip = event.target.closest("button");
      if (chip) jump(this.chips.indexOf(chip));
    });
  }

  fill(steps, text) {
    this.node.setAttribute("aria-label", text.steps);
    const groups = [];
    this.chips = steps.map((step, place) => {
      const stage = stageOf(steps, place);
      if (groups.at(-1)?.stage !== stage) {
        const name = element("span", { class: "stage", text: text.stages?.[stage] ?? stage });
        groups.push({ stage, name, chips: element("div", { class: "chips" }) });
      }
      const chip = element("button", { type: "button", class: "chip", "data-chip": step.symbol });
      chip.append(symbolNode(step.symbol));
      groups.at(-1).chips.append(chip);
      return chip;
    });
    this.node.replaceChildren(
      ...groups.map(({ name, chips }) => element("div", { class: "group" }, name, chips)),
    );
  }

  // One tab stop: the current step. Focus on a chip goes with the step.
  mark(place) {
    const chip = this.chips[place];
    const focused = this.node.contains(this.node.getRootNode().activeElement);
    for (const other of this.chips) {
      if (other === chip) continue;
      other.removeAttribute("aria-current");
      other.tabIndex = -1;
    }
    chip.setAttribute("aria-current", "step");
    chip.tabIndex = 0;
    if (focused) chip.focus({ preventScroll: true });
    // Measured after the step has been painted.
    requestAnimationFrame(() => requestAnimationFrame(() => this.centre(chip)));
  }

  centre(chip) {
    const middle = chip.offsetLeft + chip.offsetWidth / 2;
    this.node.scrollLeft = middle - this.node.clientWidth / 2;
  }
}

// A tensor handed in just before the only step that reads it (W_Q, mask) counts to that step.
function stageOf(steps, place) {
  const step = steps[place];
  const readers = steps.filter(({ reads }) => reads.includes(step.symbol));
  const joins = step.op.kind === "given" && readers.length === 1 && readers[0] === steps[place + 1];
  return (joins ? readers[0] : step).stage;
}

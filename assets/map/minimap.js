// The whole map, small, with the rectangle that is on screen. A press or drag moves the view there.

import { element } from "../microscope/format.js";

const SIDE = 132; // px

export class Minimap {
  constructor(move) {
    this.canvas = element("canvas", { class: "minimap", "aria-hidden": "true", "data-testid": "minimap" });
    const follow = (event) => {
      if (!this.view || !event.buttons) return;
      const { left, top } = this.canvas.getBoundingClientRect();
      move(((event.clientY - top) / SIDE) * this.view.S, ((event.clientX - left) / SIDE) * this.view.T);
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      follow(event);
    });
    this.canvas.addEventListener("pointermove", follow);
  }

  draw(view, overview, cell, ink, ground) {
    this.view = view;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = this.canvas.height = SIDE * ratio;
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    const all = { i: 0, j: 0, rows: view.S, cols: view.T };
    overview.draw(context, all, { x: 0, y: 0, width: SIDE, height: SIDE });
    const [y, x] = [(view.i / view.S) * SIDE, (view.j / view.T) * SIDE];
    const [high, wide] = [(view.rows / view.S) * SIDE, (view.cols / view.T) * SIDE];
    const size = (n) => Math.max(4, n);
    context.lineWidth = 3;
    context.strokeStyle = ground;
    context.strokeRect(x, y, size(wide), size(high));
    context.lineWidth = 1.5;
    context.strokeStyle = ink;
    context.strokeRect(x, y, size(wide), size(high));
    if (!cell) return;
    context.beginPath();
    context.arc((cell[1] / view.T) * SIDE, (cell[0] / view.S) * SIDE, 3, 0, 2 * Math.PI);
    context.stroke();
  }
}

// Numbers that only move are seen moving: each cell of the result starts where it came from.

const MOST_CELLS = 400;
const DURATION = 380;

export const still = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Fly cells from `from` to `to`: pairs of nodes in the document. */
export function fly(pairs, boxes) {
  if (still() || pairs.length > MOST_CELLS || !pairs.length) return;
  // All reading first, then all writing: one layout.
  if (boxes.some((box) => box.scrollWidth > box.clientWidth + 1)) return; // would be cut at the box
  const paths = pairs.map(([from, to]) => {
    const [a, b] = [from.getBoundingClientRect(), to.getBoundingClientRect()];
    return [to, a.left - b.left, a.top - b.top];
  });
  for (const box of boxes) box.classList.add("moving");
  const flights = paths.map(([node, x, y]) =>
    node.animate([{ transform: `translate(${x}px, ${y}px)` }, { transform: "none" }], {
      duration: DURATION,
      easing: "cubic-bezier(0.3, 0, 0.2, 1)",
    }),
  );
  Promise.allSettled(flights.map((flight) => flight.finished)).then(() => {
    for (const box of boxes) box.classList.remove("moving");
  });
}

// Wheel, drag, pinch, click and double click on the map. They speak in shares of the screen, 0 … 1
// from the left and from the top; what is done with them is said in map.js.

const CLICK = 5; // px that a press may wander and still be a click
const TWICE = 350; // ms between the presses of a double click

export function watch(node, act) {
  const pointers = new Map();
  let wandered = 0;
  let last = { time: 0 };
  const share = ({ clientX, clientY }) => {
    const box = act.box();
    const { left, top } = node.getBoundingClientRect();
    return [(clientX - left - box.x) / box.width, (clientY - top - box.y) / box.height];
  };
  const middle = () => {
    const all = [...pointers.values()];
    return [0, 1].map((axis) => all.reduce((sum, at) => sum + at[axis], 0) / all.length);
  };
  const spread = () => {
    const [a, b] = [...pointers.values()];
    return b ? Math.hypot(a[0] - b[0], a[1] - b[1]) : 0;
  };

  node.addEventListener(
    "wheel",
    (event) => {
      if (event.deltaY > 0 && act.full() && !event.ctrlKey) return; // on down the page
      event.preventDefault();
      const lines = event.deltaMode === 1 ? 18 : event.deltaMode === 2 ? 400 : 1;
      // A pinch on a trackpad comes as a wheel with Ctrl, in small steps.
      const amount = event.deltaY * lines * (event.ctrlKey ? 6 : 1);
      act.zoom(2 ** (Math.max(-240, Math.min(240, -amount)) / 160), ...share(event));
    },
    { passive: false },
  );
  node.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    node.setPointerCapture(event.pointerId);
    if (!pointers.size) wandered = 0;
    pointers.set(event.pointerId, share(event));
  });
  node.addEventListener("pointermove", (event) => {
    const at = share(event);
    if (!pointers.has(event.pointerId)) return void (event.pointerType !== "touch" && act.hover(...at));
    const [before, apart] = [middle(), spread()];
    const box = act.box();
    const [x, y] = pointers.get(event.pointerId);
    wandered += Math.hypot((at[0] - x) * box.width, (at[1] - y) * box.height);
    pointers.set(event.pointerId, at);
    if (wandered < CLICK) return;
    const after = middle();
    act.pan(before[0] - after[0], before[1] - after[1]);
    if (apart && spread()) act.zoom(spread() / apart, ...after);
  });
  const release = (event) => {
    if (!pointers.delete(event.pointerId) || pointers.size) return;
    if (event.type === "pointercancel" || wandered >= CLICK) return;
    const now = { time: event.timeStamp, at: share(event) };
    const twice = now.time - last.time < TWICE && Math.hypot(now.at[0] - last.at[0], now.at[1] - last.at[1]) < 0.03;
    last = twice ? { time: 0 } : now;
    (twice ? act.descend : act.click)(...now.at);
  };
  node.addEventListener("pointerup", release);
  node.addEventListener("pointercancel", release);
  node.addEventListener("pointerleave", () => act.hover());
}

// Draws the figure, and lets text and table follow its frames.
(() => {
  const figure = document.getElementById("figure");
  const sections = [...document.querySelectorAll(".step")];
  const rows = [...document.querySelectorAll("tr[data-step]")];
  const { data, layout, frames, config, pause } = JSON.parse(
    document.getElementById("figure-data").textContent,
  );
  const last = sections.length - 1;
  let current = 0;
  let playing = false;

  function show(step) {
    current = step;
    document.body.dataset.step = step;
    sections.forEach((section, at) => section.toggleAttribute("data-current", at === step));
    rows.forEach((row, at) =>
      at === step ? row.setAttribute("aria-current", "step") : row.removeAttribute("aria-current"),
    );
  }

  function animate(names, duration) {
    const frame = { duration, redraw: true };
    const options = { mode: "immediate", fromcurrent: true, frame, transition: { duration: 0 } };
    return Plotly.animate(figure, names, options).catch(() => {}); // stopped by the next one
  }

  function go(step) {
    const kept = Math.min(last, Math.max(0, step));
    show(kept);
    animate([String(kept)], 0);
  }

  const moves = {
    ArrowRight: () => go(current + 1),
    ArrowLeft: () => go(current - 1),
    Home: () => go(0),
    End: () => go(last),
    " ": () => (playing ? animate([null], 0) : animate(null, pause)),
  };

  document.addEventListener("keydown", (event) => {
    const own = event.key === " " && event.target.closest("button");
    if (own || event.ctrlKey || event.metaKey || event.altKey || !moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  });
  rows.forEach((row, at) => row.querySelector("button").addEventListener("click", () => go(at)));

  // Plotly's own buttons leave the promise of an animation they stop unhandled.
  addEventListener("unhandledrejection", (event) => {
    if (event.reason === undefined) event.preventDefault();
  });

  document.documentElement.classList.add("live");
  show(0);
  Plotly.newPlot(figure, { data, layout, frames, config }).then(() => {
    figure.on("plotly_animatingframe", (event) => show(Number(event.name)));
    figure.on("plotly_animating", () => (playing = true));
    figure.on("plotly_animated", () => (playing = false));
    figure.on("plotly_animationinterrupted", () => (playing = false));
    document.body.dataset.ready = "true";
  });
})();

// The way back leads to the page before. Streamlit adds to the history whenever the query changes,
// with each step and each slider, but does not follow when one goes back there.
// Loaded before Streamlit's own script, which changes the query as soon as a page is up.

{
  const push = history.pushState;
  history.pushState = function (state, title, url) {
    const stays = url != null && new URL(url, location.href).pathname === location.pathname;
    return (stays ? history.replaceState : push).call(history, state, title, url);
  };
}

// What Streamlit's page lacks around ours: the language of the document (for screen readers and
// fonts), keyboard access to what scrolls sideways, and on a phone a menu that reads as links and
// folds away after a choice.
// Runs again on every change of its data, so everything here may be repeated.

const PHONE = "(max-width: 768px)";
const SCROLLERS = '[data-testid="stMain"] :is(pre, [data-testid="stTable"], [data-testid="stTable"] div)';
const PAUSE = 150; // ms: one look after a burst of changes
let watcher;
let waiting;

// In the sidebar, which holds the menu on a phone, Streamlit puts headings into a <ul> and the <li>
// outside of any: lists that are none. Without the roles of a list they are links, which they are.
function unlistMenu() {
  for (const list of document.querySelectorAll('[data-testid="stSidebarNavItems"]')) {
    for (const part of [list, ...list.querySelectorAll("li")]) {
      part.setAttribute("role", "presentation");
    }
  }
}

function letScrollersBeReached() {
  for (const element of document.querySelectorAll(SCROLLERS)) {
    const scrolls = element.scrollWidth > element.clientWidth;
    if (scrolls && getComputedStyle(element).overflowX !== "visible") element.tabIndex = 0;
    else element.removeAttribute("tabindex");
  }
}

function mend() {
  waiting = undefined;
  unlistMenu();
  letScrollersBeReached();
}

function mendSoon() {
  waiting ??= setTimeout(mend, PAUSE);
}

function keepMended() {
  mend();
  if (watcher) return;
  watcher = new MutationObserver(mendSoon);
  watcher.observe(document.body, { childList: true, subtree: true });
  window.addEventListener("resize", mendSoon);
}

function foldMenuAfterChoice(page) {
  const before = document.documentElement.dataset.page;
  document.documentElement.dataset.page = page;
  if (before === undefined || before === page || !matchMedia(PHONE).matches) return;
  document.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click();
}

export default function frame({ data }) {
  document.documentElement.lang = data.lang;
  keepMended();
  foldMenuAfterChoice(data.page);
}

// What Streamlit's page lacks around ours: the language of the document (for screen readers and
// fonts), and on a phone a menu that reads as links and folds away after a choice.
// Runs again on every change of its data, so everything here may be repeated.

const PHONE = "(max-width: 768px)";
let watcher;

// In the sidebar, which holds the menu on a phone, Streamlit puts headings into a <ul> and the <li>
// outside of any: lists that are none. Without the roles of a list they are links, which they are.
function unlist(sidebar) {
  for (const list of sidebar.querySelectorAll('[data-testid="stSidebarNavItems"]')) {
    for (const part of [list, ...list.querySelectorAll("li")]) {
      part.setAttribute("role", "presentation");
    }
  }
}

function keepUnlisted() {
  const sidebar = document.querySelector('[data-testid="stSidebar"]');
  watcher?.disconnect();
  if (!sidebar) return;
  unlist(sidebar);
  watcher = new MutationObserver(() => unlist(sidebar));
  watcher.observe(sidebar, { childList: true, subtree: true });
}

function foldMenuAfterChoice(page) {
  const before = document.documentElement.dataset.page;
  document.documentElement.dataset.page = page;
  if (before === undefined || before === page || !matchMedia(PHONE).matches) return;
  document.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click();
}

export default function frame({ data }) {
  document.documentElement.lang = data.lang;
  keepUnlisted();
  foldMenuAfterChoice(data.page);
}

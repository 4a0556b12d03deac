// What Streamlit's page lacks around ours: the language of the document (for screen readers and
// fonts), a name for the menu, and a menu that folds away on a phone after a choice.
// Runs again on every change of its data, so everything here may be repeated.

const PHONE = "(max-width: 768px)";

function nameMenu(label) {
  const menu = document.querySelector(".st-key-menu");
  menu?.setAttribute("role", "navigation");
  menu?.setAttribute("aria-label", label);
}

function foldMenuAfterChoice(page) {
  const before = document.documentElement.dataset.page;
  document.documentElement.dataset.page = page;
  if (before === undefined || before === page || !matchMedia(PHONE).matches) return;
  document.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click();
}

export default function frame({ data }) {
  document.documentElement.lang = data.lang;
  nameMenu(data.menu);
  foldMenuAfterChoice(data.page);
}

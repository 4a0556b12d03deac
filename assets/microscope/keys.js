// Keys for the whole page: one listener, whatever is mounted. It works where the focus is nowhere
// in particular, and leaves alone whatever uses these keys itself.

const ARROWS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"];
const KEYS = new Set([...ARROWS, "Home", "End", " ", "Enter", "Escape"]);
const OWN_KEYS = new Set(["INPUT", "TEXTAREA", "SELECT", "OPTION", "VIDEO", "AUDIO", "IFRAME"]);
const OWN_ROLES = new Set(
  ("textbox searchbox combobox listbox option slider spinbutton tablist tab menu menubar menuitem " +
    "radio radiogroup tree treeitem grid treegrid gridcell scrollbar dialog application").split(" "),
);
const PRESSED_BY_SPACE = new Set(["BUTTON", "SUMMARY", "A"]);

const mounted = new Set();
let favourite = null;

/** Let a microscope hear the page's keys. It has `root`, and `key(event, path) -> handled`. */
export function listen(scope) {
  if (!mounted.size) window.addEventListener("keydown", press, true);
  mounted.add(scope);
}

export function mute(scope) {
  mounted.delete(scope);
  if (!mounted.size) window.removeEventListener("keydown", press, true);
}

/** With several on a page, the one last touched listens. */
export function prefer(scope) {
  favourite = scope;
}

function press(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey || event.isComposing) return;
  if (!KEYS.has(event.key)) return;
  const path = event.composedPath();
  const scope = chosen(path);
  if (!scope || taken(event, path, scope)) return;
  if (scope.key(event, path)) {
    event.preventDefault();
    event.stopPropagation();
  }
}

function chosen(path) {
  const present = [...mounted].filter(({ root }) => root.isConnected);
  return (
    present.find(({ root }) => path.includes(root)) ??
    present.find((scope) => scope === favourite) ??
    present[0]
  );
}

// Does something between the focus and the page want this key for itself?
function taken(event, path, { root }) {
  const host = root.getRootNode().host ?? root;
  for (const node of path) {
    if (node === root) break;
    if (!(node instanceof Element)) continue;
    if (OWN_KEYS.has(node.tagName) || node.isContentEditable) return true;
    const around = root.contains(node) || node.contains(host);
    if (!around && OWN_ROLES.has(node.getAttribute("role"))) return true;
    if (!around && node.dataset.testid === "stDataFrame") return true;
    const pressed = PRESSED_BY_SPACE.has(node.tagName) || node.getAttribute("role") === "button";
    if (pressed && (event.key === " " || event.key === "Enter")) return true;
  }
  return !path.includes(root) && Boolean(document.querySelector('[aria-modal="true"]'));
}

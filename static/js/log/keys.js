// The keyboard shortcuts of the log viewer: small letters for the open log, capital letters for all logs.

export const KEYS = [
  { key: "f", does: "Find in this log", act: (view) => view.part("find").focus() },
  { key: "F", does: "Search in all logs", act: (view) => view.results.focus() },
  { key: "t", does: "Go to the first traceback of this log", act: (view) => view.showTraceback() },
  { key: "T", does: "Show the first traceback of all ranks", act: (view) => view.results.searchTraceback() },
  { key: "w", does: "Wrap long lines", act: (view) => view.toolbar.toggleWrap() },
  { key: "n", does: "Next match", act: (view) => view.moveToHit(1) },
  { key: "N", does: "Previous match", act: (view) => view.moveToHit(-1) },
  { key: "j", does: "Next log or matching line", act: (view) => moveFocus(view, 1) },
  { key: "k", does: "Previous log or matching line", act: (view) => moveFocus(view, -1) },
  { key: "End", does: "Follow the end of the log", act: (view) => view.rows.setFollowing(true) },
  { key: "G", does: "Follow the end of the log", act: (view) => view.rows.setFollowing(true) },
  { key: "Home", does: "Go to the beginning of the log", act: (view) => view.rows.scrollTo(0, "start") },
];

export function handleKey(event, view) {
  if (event.target.closest("input, textarea, select, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
  const shortcut = KEYS.find(({ key }) => key === event.key);
  if (!shortcut) return;
  event.preventDefault();
  shortcut.act(view);
}

/** Focuses the next or previous lane or search hit. Enter opens it, as it does any link. */
function moveFocus(view, step) {
  const rows = [...view.root.querySelectorAll(view.results.isOpen ? ".hit" : ".lane")].filter(
    (row) => row.offsetParent,
  );
  const focusIndex = rows.indexOf(document.activeElement);
  const current = focusIndex < 0 ? rows.findIndex((row) => row.hasAttribute("aria-current")) : focusIndex;
  rows[Math.min(Math.max(current + step, 0), rows.length - 1)]?.focus();
}

// The keyboard shortcuts of the log viewer: small letters for the open log, capital letters for all logs.

export function handleKey(event, view) {
  if (event.target.closest("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  const actions = {
    f: () => view.part("find").focus(),
    F: () => view.results.focus(),
    t: () => view.showTraceback(),
    T: () => view.results.searchTraceback(),
    w: () => view.toolbar.toggleWrap(),
    n: () => view.moveToHit(1),
    N: () => view.moveToHit(-1),
    j: () => moveFocus(view, 1),
    k: () => moveFocus(view, -1),
    End: () => view.rows.setFollowing(true),
    G: () => view.rows.setFollowing(true),
    Home: () => view.rows.scrollTo(0, "start"),
  };
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
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

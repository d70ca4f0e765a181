// The keys of the log viewer: small letters for the log that is shown, capital ones for all of them.

export function pressed(event, view) {
  if (event.target.closest("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  const actions = {
    f: () => view.part("find").focus(),
    F: () => view.results.focus(),
    t: () => view.showTraceback(),
    T: () => view.results.firstTraceback(),
    w: () => view.setWrap(!view.rows.wrap),
    n: () => view.goFound(1),
    N: () => view.goFound(-1),
    j: () => walk(view, 1),
    k: () => walk(view, -1),
    End: () => view.rows.follow(true),
    G: () => view.rows.follow(true),
    Home: () => view.rows.show(0, "start"),
  };
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
}

/** To the next lane or line found; Enter opens it, as it does any link. */
function walk(view, step) {
  const rows = [...view.root.querySelectorAll(view.results.isOpen ? ".hit" : ".lane")].filter((row) => row.offsetParent);
  const at = rows.indexOf(document.activeElement);
  const current = at < 0 ? rows.findIndex((row) => row.hasAttribute("aria-current")) : at;
  rows[Math.min(Math.max(current + step, 0), rows.length - 1)]?.focus();
}

// Keys that work everywhere: Ctrl-K for the command palette, `/` to search, `?` for the list of keys, j and k through a
// table's rows, Enter to open, Escape to leave. What they open is loaded when it is needed.

const rows = () => [...document.querySelectorAll("[data-rows] tbody tr")];
let currentId = null; // the id of the current row: htmx replaces the row elements

document.addEventListener("keydown", (event) => {
  if (event.key === "k" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    import("./palette.js").then(({ openPalette }) => openPalette());
    return;
  }
  const isTyping = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key === "Escape" && event.target.id === "search") event.target.blur();
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key === "/") {
    event.preventDefault();
    document.querySelector("#search")?.focus();
  } else if (event.key === "?") {
    import("./shortcuts.js").then(({ showShortcuts }) => showShortcuts());
  } else {
    handleRowKey(event);
  }
});

function handleRowKey(event) {
  if (event.key === "j" || event.key === "k") {
    const all = rows();
    const index = all.findIndex(({ id }) => id === currentId) + (event.key === "j" ? 1 : -1);
    const row = all[Math.min(Math.max(index, 0), all.length - 1)];
    currentId = row?.id ?? null;
    markCurrentRow();
    row?.scrollIntoView({ block: "nearest" });
  } else if (event.key === "Enter" && currentId && event.target === document.body) {
    rows()
      .find((row) => row.id === currentId)
      ?.querySelector("a")
      ?.click();
  }
}

function markCurrentRow() {
  for (const row of rows()) row.classList.toggle("th-at", row.id === currentId);
}

// Not on afterSwap: while htmx settles, it resets the attributes of rows that were there before.
document.addEventListener("htmx:afterSettle", markCurrentRow);

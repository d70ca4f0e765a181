// Keys that work everywhere: `/` or Ctrl-K to search, j and k through a table's rows, Enter to open, Escape to leave.

const rows = () => [...document.querySelectorAll("[data-rows] tbody tr")];
let at = null; // the row's id: rows are swapped while the page lives

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if ((event.key === "k" && (event.ctrlKey || event.metaKey)) || (event.key === "/" && !typing)) {
    event.preventDefault();
    document.querySelector("#search")?.focus();
  } else if (event.key === "Escape" && event.target.id === "search") {
    event.target.blur();
  } else if (!typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    rowKey(event);
  }
});

function rowKey(event) {
  if (event.key === "j" || event.key === "k") {
    const all = rows();
    const index = all.findIndex((row) => row.id === at) + (event.key === "j" ? 1 : -1);
    const row = all[Math.min(Math.max(index, 0), all.length - 1)];
    at = row?.id ?? null;
    mark();
    row?.scrollIntoView({ block: "nearest" });
  } else if (event.key === "Enter" && at && event.target === document.body) {
    rows().find((row) => row.id === at)?.querySelector("a")?.click();
  }
}

function mark() {
  for (const row of rows()) row.classList.toggle("th-at", row.id === at);
}

// Not after the swap: settling gives rows that were there before the attributes of the answer.
document.addEventListener("htmx:afterSettle", mark);

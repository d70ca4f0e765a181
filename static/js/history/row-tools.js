// What a row of the run table has only while it is in use, so that a page of fifty rows stays light: links that narrow
// the table to the value of a cell, titles of texts that are cut, and the run's actions.
import { mountIn } from "../app.js";
import { actionsOfRun, narrowedQuery } from "./row-text.js";

const equipped = new WeakSet();

export function equipRow(row) {
  if (equipped.has(row)) return;
  equipped.add(row);
  const table = row.closest("table");
  for (const cell of row.cells) {
    if (cell.dataset.narrow) addNarrowLink(cell, table);
    for (const text of cell.querySelectorAll(".th-cut, .th-value")) {
      if (!text.title && text.scrollWidth > text.clientWidth) text.title = text.textContent;
    }
  }
  const star = row.querySelector(".th-star");
  if (star) star.title = star.ariaPressed === "true" ? "Remove your star" : "Star this run to find it again";
  addActions(row);
}

function addNarrowLink(cell, table) {
  const condition = `${table.tHead.rows[0].cells[cell.cellIndex].dataset.key} ${cell.dataset.narrow}`;
  const value = cell.querySelector(".th-value");
  // Numbers are rounded, and the condition has all digits.
  if (value && !value.title && cell.matches(".th-num")) value.title = cell.dataset.narrow.replace(/^\S+ /, "");
  const link = document.createElement("a");
  link.className = "th-narrow";
  link.href = narrowedQuery(location.search, table.dataset.narrow, condition);
  link.title = condition;
  link.setAttribute("aria-label", `Only runs with ${condition}`);
  link.innerHTML = '<svg width="12" height="12" aria-hidden="true"><use href="#th-funnel"/></svg>';
  cell.append(link);
}

function addActions(row) {
  const { actions } = row.dataset;
  const source = actions && document.querySelector(`template[data-actions-of="${actions}"]`);
  if (!source) return;
  const box = document.createElement("div");
  box.className = "th-row-actions";
  box.innerHTML = actionsOfRun(source.innerHTML, row.id.replace("run-", ""));
  row.cells[row.cells.length - 1].append(box);
  mountIn(box);
}

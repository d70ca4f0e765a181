// The same numbers as a table: what charts say to those who cannot see them, and to those who want figures.

import { shown } from "./units.js";

/** Of each line: {label, now, mean, max} over what is shown; null = not known. */
export function lastValues(lines) {
  return lines.map(({ row, label }) => {
    const known = row.mean.filter((value) => value !== null);
    return {
      label,
      now: newest(row),
      mean: known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null,
      max: known.length ? row.max.reduce((most, value) => (value === null ? most : Math.max(most, value)), -Infinity) : null,
    };
  });
}

/** It stands only while it is new: a GPU that fell silent has none. */
export function newest(row) {
  return row.mean.slice(-3).findLast((value) => value !== null) ?? null;
}

export function writeTable(panel) {
  const words = (values) => values.map((value) => shown(value, panel.spec.unit));
  const rows = lastValues(panel.lines).map(({ label, now, mean, max }) => [label, ...words([now, mean, max])]);
  writeRows(panel, ["Now", "Mean", "Highest"], rows);
}

/** `rows`: [label, word, …], a word for each title. */
export function writeRows(panel, titles, rows) {
  const place = panel.element.querySelector(".ch-values");
  if (panel.isEmpty) {
    place.replaceChildren();
    return;
  }
  const table = document.createElement("table");
  table.className = "th-table";
  table.createCaption().textContent = panel.spec.label;
  table.caption.className = "th-off";
  const head = table.createTHead().insertRow();
  for (const word of ["", ...titles]) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = word;
    if (word) cell.className = "th-num";
    head.append(cell);
  }
  const body = table.createTBody();
  for (const [label, ...words] of rows) {
    const row = body.insertRow();
    const name = document.createElement("th");
    name.scope = "row";
    name.textContent = label;
    row.append(name);
    for (const word of words) {
      const cell = row.insertCell();
      cell.className = "th-num";
      cell.textContent = word;
    }
  }
  place.replaceChildren(table);
}

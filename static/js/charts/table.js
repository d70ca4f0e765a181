// The numbers of a chart as a table, for people who cannot see charts and people who want figures.

import { formatValue } from "./units.js";

/** Returns {label, now, mean, max} of each line over the span shown; null is unknown. */
export function summarizeLines(lines) {
  return lines.map(({ row, label }) => {
    const numbers = row.mean.filter((value) => value !== null);
    return {
      label,
      now: newestValue(row),
      mean: numbers.length ? numbers.reduce((sum, value) => sum + value, 0) / numbers.length : null,
      max: numbers.length
        ? row.max.reduce((largest, value) => (value === null ? largest : Math.max(largest, value)), -Infinity)
        : null,
    };
  });
}

/** Returns the newest value of a row, or null if the last three points are unknown: the GPU has fallen silent. */
export function newestValue(row) {
  return row.mean.slice(-3).findLast((value) => value !== null) ?? null;
}

/**
 * Returns {mean, max} of all lines over the span shown, without its first and last points, whose times are only partly
 * in the span; null is unknown.
 */
export function summarizeSpan(lines) {
  const inside = (values) => (values.length > 2 ? values.slice(1, -1) : values);
  const known = (part) => lines.flatMap(({ row }) => inside(row[part])).filter((value) => value !== null);
  const means = known("mean");
  return {
    mean: means.length ? means.reduce((sum, value) => sum + value, 0) / means.length : null,
    max: known("max").reduce((largest, value) => Math.max(largest ?? value, value), null),
  };
}

export function writeSummaryTable(panel) {
  const formatAll = (values) => values.map((value) => formatValue(value, panel.spec.unit));
  const rows = summarizeLines(panel.lines).map(({ label, now, mean, max }) => [label, ...formatAll([now, mean, max])]);
  writeValueTable(panel, ["Now", "Mean", "Highest"], rows);
}

/** Writes a table below a panel. `rows`: [label, text, …], a text for each title. */
export function writeValueTable(panel, titles, rows) {
  const container = panel.element.querySelector(".ch-values");
  if (panel.isEmpty) {
    container.replaceChildren();
    return;
  }
  const table = document.createElement("table");
  table.className = "th-table";
  table.createCaption().textContent = panel.spec.label;
  table.caption.className = "th-off";
  const head = table.createTHead().insertRow();
  for (const word of ["", ...titles]) {
    const cell = document.createElement(word ? "th" : "td"); // a header without text confuses screen readers
    if (word) Object.assign(cell, { scope: "col", className: "th-num", textContent: word });
    head.append(cell);
  }
  const body = table.createTBody();
  for (const [label, ...texts] of rows) {
    const row = body.insertRow();
    const name = document.createElement("th");
    name.scope = "row";
    name.textContent = label;
    row.append(name);
    for (const text of texts) {
      const cell = row.insertCell();
      cell.className = "th-num";
      cell.textContent = text;
    }
  }
  container.replaceChildren(table);
}

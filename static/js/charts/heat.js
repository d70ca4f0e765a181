// Every GPU of a cluster over time, a row each: `<div data-mount="heat" data-url="/api/v1/clusters/…/heat/" data-metric="id of a <select>">`,
// whose options tell their unit (data-unit). Shows the span of the page's picker (range.js).
//
// Rows of one node stand together. Beyond MOST_ROWS a node's GPUs are one row, their mean: more lines than pixels tell nothing.

import { mount } from "../app.js";
import { Palette, watchTheme } from "./palette.js";
import { plotly } from "./plotly.js";
import { onRange, timeRange } from "./range.js";
import { load } from "./series.js";
import { scale, shown } from "./units.js";

const MOST_ROWS = 128;
const [ROW_PX, LEAST_PX, MOST_PX] = [12, 120, 640];
const AGAIN_MS = 10_000;
const NARROW_PX = 480; // a phone has no room for the scale of colours: the tip tells each value
const MARGIN = { l: 110, r: 8, t: 4, b: 24 };

/** The answer's rows, or a row per node where there are too many. */
export function rowsOf(answer, most = MOST_ROWS) {
  const rows = answer.rows.map(({ node, index, mean }) => ({ label: `${node} · ${index}`, node, values: mean }));
  if (rows.length <= most) return rows;
  const nodes = [...new Set(rows.map(({ node }) => node))];
  return nodes.map((node) => {
    const own = rows.filter((row) => row.node === node);
    return { label: `${node} (${own.length})`, node, values: answer.times.map((_, at) => meanOf(own.map(({ values }) => values[at]))) };
  });
}

function meanOf(values) {
  const known = values.filter((value) => value !== null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

class HeatMap {
  constructor(element) {
    this.element = element;
    this.note = element.parentElement.querySelector(".ch-note");
    this.select = document.getElementById(element.dataset.metric);
    this.palette = new Palette();
    const again = () => this.fetch();
    this.select.addEventListener("change", again);
    this.timer = setInterval(() => !document.hidden && timeRange().isLive && this.fetch(), AGAIN_MS);
    this.undo = [onRange(again), watchTheme(() => this.#recolor())];
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(element);
    plotly(); // is on its way while the numbers are
    this.fetch();
  }

  async fetch() {
    this.asked?.abort();
    const asked = (this.asked = new AbortController());
    const { from, to } = timeRange();
    const points = Math.max(60, Math.min(400, Math.round(this.element.clientWidth / 4)));
    try {
      const query = { metric: this.select.value, from: Math.floor(from), to: Math.ceil(to), points };
      this.answer = await load(this.element.dataset.url, query, asked.signal);
      this.note.textContent = this.answer.rows.length ? "" : "Nothing was measured in this time.";
      await this.draw();
    } catch (error) {
      if (error.name !== "AbortError") this.note.textContent = error.message;
    }
  }

  async draw() {
    if (!this.answer) return;
    const Plotly = await plotly();
    const { answer, palette } = this;
    const rows = rowsOf(answer);
    const width = this.element.clientWidth;
    const unit = this.select.selectedOptions[0].dataset.unit;
    const most = unit === "%" ? 100 : Math.max(1e-9, ...rows.flatMap(({ values }) => values.filter((value) => value !== null)));
    const { by, unit: scaled } = scale(unit, most);
    const trace = {
      type: "heatmap", x: answer.times.map((at) => new Date(at * 1000)), y: rows.map(({ label }) => label),
      z: rows.map(({ values }) => values.map((value) => (value === null ? null : value / by))), zmin: 0, zmax: most / by,
      text: rows.map(({ values }) => values.map((value) => shown(value, unit))), hoverongaps: false, showscale: width >= NARROW_PX, xgap: 0, ygap: 1,
      hovertemplate: "%{y}<br>%{x|%b %e, %H:%M:%S}<br>%{text}<extra></extra>",
      colorscale: [[0, palette.tone("ground")], [1, palette.accent]],
      colorbar: { title: { text: scaled, side: "right" }, thickness: 8, outlinewidth: 0, tickfont: { color: palette.muted, size: 11 } },
    };
    const height = Math.max(LEAST_PX, Math.min(MOST_PX, rows.length * ROW_PX + MARGIN.t + MARGIN.b));
    this.element.style.height = `${height}px`;
    const axis = { color: palette.muted, gridcolor: palette.line, tickfont: { size: 11 }, fixedrange: true, zeroline: false };
    const layout = {
      height, margin: MARGIN, paper_bgcolor: "transparent", plot_bgcolor: "transparent", showlegend: false,
      font: { family: palette.sans, color: palette.muted, size: 11 }, xaxis: { ...axis, type: "date", tickangle: 0, nticks: Math.max(2, Math.floor((width - MARGIN.l) / 90)) },
      yaxis: { ...axis, autorange: "reversed", showgrid: false, type: "category", ...(rows.length * ROW_PX > MOST_PX ? { dtick: Math.ceil((rows.length * ROW_PX) / MOST_PX) } : {}) },
      hoverlabel: { bgcolor: palette.surface, bordercolor: palette.line, font: { color: palette.text } },
    };
    await Plotly.react(this.element, [trace], layout, { displayModeBar: false, responsive: false });
  }

  #recolor() {
    this.palette.read();
    this.draw();
  }

  close() {
    clearInterval(this.timer);
    this.asked?.abort();
    this.resized.disconnect();
    for (const undo of this.undo) undo();
  }
}

// Last: what is on the page already is mounted at once.
mount("heat", (element) => {
  const map = new HeatMap(element);
  return () => map.close();
});

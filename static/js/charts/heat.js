// A heat map of every GPU of a cluster over time, for the span of the page's picker (range.js):
// `<div data-mount="heat" data-url="/api/v1/clusters/…/heat/" data-metric="id of a <select>">`. The options of the
// <select> have their unit in data-unit. Rows of one node are adjacent.

import { mount } from "../app.js";
import { Palette, watchTheme } from "./palette.js";
import { heatRows, largestValue } from "./heat-rows.js";
import { loadPlotly } from "./plotly.js";
import { onRangeChange, timeRange } from "./range.js";
import { fetchJson } from "./series.js";
import { unitScale, formatValue } from "./units.js";

const [ROW_PX, MIN_PX, MAX_PX] = [12, 120, 640];
const REFETCH_MS = 10_000;
const NARROW_PX = 480; // a phone has no room for the colour scale; the tooltip shows each value
const MARGIN = { l: 110, r: 8, t: 4, b: 24 };

class HeatMap {
  constructor(element) {
    this.element = element;
    this.note = element.parentElement.querySelector(".ch-note");
    this.select = document.getElementById(element.dataset.metric);
    this.palette = new Palette();
    const refetch = () => this.fetch();
    this.select.addEventListener("change", refetch);
    this.timer = setInterval(() => !document.hidden && timeRange().isLive && this.fetch(), REFETCH_MS);
    this.stops = [onRangeChange(refetch), watchTheme(() => this.#recolor())];
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(element);
    loadPlotly(); // load it while the numbers are fetched
    this.fetch();
  }

  async fetch() {
    this.request?.abort();
    const request = (this.request = new AbortController());
    const { from, to } = timeRange();
    const points = Math.max(60, Math.min(400, Math.round(this.element.clientWidth / 4)));
    try {
      const query = { metric: this.select.value, from: Math.floor(from), to: Math.ceil(to), points };
      this.answer = await fetchJson(this.element.dataset.url, query, request.signal);
      this.note.textContent = this.answer.rows.length ? "" : "Nothing was measured in this period.";
      await this.draw();
    } catch (error) {
      if (error.name !== "AbortError") this.note.textContent = error.message;
    }
  }

  async draw() {
    if (!this.answer) return;
    const Plotly = await loadPlotly();
    const rows = heatRows(this.answer);
    const height = Math.max(MIN_PX, Math.min(MAX_PX, rows.length * ROW_PX + MARGIN.t + MARGIN.b));
    this.element.style.height = `${height}px`;
    const config = { displayModeBar: false, responsive: false };
    await Plotly.react(this.element, [this.#trace(rows)], this.#layout(rows, height), config);
  }

  #trace(rows) {
    const { answer, palette } = this;
    const { unit } = this.select.selectedOptions[0].dataset;
    const largest = unit === "%" ? 100 : largestValue(rows);
    const { divisor, unit: scaledUnit } = unitScale(unit, largest);
    return {
      type: "heatmap",
      x: answer.times.map((at) => new Date(at * 1000)),
      y: rows.map(({ label }) => label),
      z: rows.map(({ values }) => values.map((value) => (value === null ? null : value / divisor))),
      zmin: 0,
      zmax: largest / divisor,
      text: rows.map(({ values }) => values.map((value) => formatValue(value, unit))),
      hoverongaps: false,
      showscale: this.element.clientWidth >= NARROW_PX,
      xgap: 0,
      ygap: 1,
      hovertemplate: "%{y}<br>%{x|%b %e, %H:%M:%S}<br>%{text}<extra></extra>",
      colorscale: [
        [0, palette.tone("ground")],
        [1, palette.accent],
      ],
      colorbar: {
        title: { text: scaledUnit, side: "right" },
        thickness: 8,
        outlinewidth: 0,
        tickfont: { color: palette.muted, size: 11 },
      },
    };
  }

  #layout(rows, height) {
    const { palette } = this;
    const rowsPx = rows.length * ROW_PX;
    const nticks = Math.max(2, Math.floor((this.element.clientWidth - MARGIN.l) / 90));
    const base = {
      color: palette.muted,
      gridcolor: palette.line,
      tickfont: { size: 11 },
      fixedrange: true,
      zeroline: false,
    };
    return {
      height,
      margin: MARGIN,
      paper_bgcolor: "transparent",
      plot_bgcolor: "transparent",
      showlegend: false,
      font: { family: palette.sans, color: palette.muted, size: 11 },
      xaxis: { ...base, type: "date", tickangle: 0, nticks },
      yaxis: {
        ...base,
        autorange: "reversed",
        showgrid: false,
        type: "category",
        ...(rowsPx > MAX_PX ? { dtick: Math.ceil(rowsPx / MAX_PX) } : {}),
      },
      hoverlabel: { bgcolor: palette.surface, bordercolor: palette.line, font: { color: palette.text } },
    };
  }

  #recolor() {
    this.palette.readTheme();
    this.draw();
  }

  close() {
    clearInterval(this.timer);
    this.request?.abort();
    this.resized.disconnect();
    for (const stop of this.stops) stop();
  }
}

// Last, because it mounts at once what is on the page already.
mount("heat", (element) => {
  const map = new HeatMap(element);
  return () => map.close();
});

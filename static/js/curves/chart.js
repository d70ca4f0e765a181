// One metric as a chart: a line for each run, its average on top, and marks where a value is not a number.

import { withOpacity } from "../charts/palette.js";
import { MARGIN, Panel } from "../charts/panel.js";
import { writeValueTable } from "../charts/table.js";
import { AXES } from "./axes.js";
import { formatNumber, formatNumberRange } from "./numbers.js";
import { xRange, yRange } from "./ranges.js";

const CONFIG = { staticPlot: true, displayModeBar: false, responsive: false };
const SYMBOLS = { NaN: "x", Infinity: "triangle-up", "-Infinity": "triangle-down" };
const FAINT_OPACITY = 0.28;
const SPARSE = 30; // fewer points than this are drawn as points, too

export class CurveChart extends Panel {
  /** `summaries`: what the hub says about whole curves, {run: {last, min, max, last_step, count}}. */
  constructor(key, label, parent, widen) {
    super({ key, label, unit: "", metrics: [{ key }] }, parent);
    this.key = key;
    this.summaries = new Map();
    this.available = [];
    this.element.hidden = false;
    this.element.classList.add("cv-chart");
    this.element.dataset.key = key;
    this.element.querySelector(".ch-title").title = key;
    this.note = document.createElement("p");
    this.note.className = "cv-nothing";
    this.plot.append(this.note);
    this.element.querySelector("figcaption").append(widen);
  }

  /** Selects the lines to draw from `available`, in the order of the legend. */
  selectLines(legend, palette) {
    this.lines = [...legend.chips.keys()].flatMap((id) => {
      if (!legend.isVisible(id)) return [];
      return this.available
        .filter((line) => line.id === id && !line.isEmpty)
        .map((line) => {
          const { color, dash } = palette.styleOf(id);
          return Object.assign(line, { color, dash, label: legend.chips.size > 1 ? legend.names.get(id).label : "" });
        });
    });
  }

  /** view: {axis, smoothing, isLog (of x), isLogY, from, to (a span, or null), palette}. */
  draw(Plotly, view) {
    this.needsDraw = false;
    this.note.textContent = this.isEmpty && this.isLoaded ? this.#emptyText(view) : "";
    this.view = this.isEmpty ? null : { ...view, ...xRange(this.lines, view), width: this.plot.clientWidth };
    if (this.isEmpty) {
      Plotly.purge(this.drawing);
      this.showReadout();
      return;
    }
    const axis = AXES[view.axis];
    this.view.formatX = (at) => axis.format(at, this.view.to - this.view.from);
    Plotly.react(
      this.drawing,
      [...this.lines.flatMap((line) => this.#traces(line)), ...this.#markTraces()],
      this.#layout(axis),
      CONFIG,
    );
    this.plot.setAttribute(
      "aria-label",
      `${this.key}: ${this.lines.length} line${this.lines.length === 1 ? "" : "s"}, now ${this.readoutOfSpan()}`,
    );
    this.showReadout();
  }

  readoutOfSpan() {
    return formatNumberRange(this.#lineSummaries().map(({ last }) => last));
  }

  showReadout() {
    if (this.crosshairAt !== null && this.crosshairAt !== undefined) return;
    const summaries = this.#lineSummaries();
    const numbers = (name) => summaries.map((summary) => summary[name]).filter(Number.isFinite);
    const [low, high] = [Math.min(...numbers("min")), Math.max(...numbers("max"))];
    this.readout.textContent = this.readoutOfSpan();
    const more = document.createElement("small");
    more.textContent = Number.isFinite(low) && low < high ? ` ${formatNumber(low)} … ${formatNumber(high)}` : "";
    more.title = "Lowest and highest value of the whole curve";
    this.readout.append(more);
  }

  readoutAt(at) {
    return formatNumberRange(this.valuesAt(at).map(({ mean }) => mean));
  }

  valuesAt(at) {
    return this.lines.map((line) => {
      const point = line.valueAt(at, this.view, this.view.smoothing);
      const { label, color, dash } = line;
      const detail = line.low ? point?.spread : this.view.smoothing ? point?.raw : null;
      return { label, color, dash, mean: point?.value ?? null, max: detail ?? null };
    });
  }

  format(value) {
    return formatNumber(value);
  }

  detail(mean, more) {
    if (more === null || more === undefined) return "";
    return this.lines.some((line) => line.low) ? `± ${formatNumber(more)}` : formatNumber(more);
  }

  highlight(id) {
    const elements = this.drawing.querySelectorAll(".subplot.xy .scatterlayer > .trace");
    this.lines
      .flatMap((line) => line.traces.map(() => line.id))
      .forEach((lineId, index) => {
        if (elements[index]) elements[index].style.opacity = id === null || lineId === id ? 1 : 0.12;
      });
  }

  writeTable() {
    const rows = this.lines.map((line) => {
      const summary = this.summaries.get(line.id) ?? {};
      const markCount = line.marks.length ? `${line.marks.length}` : "";
      return [
        line.label || this.key,
        formatNumber(summary.last ?? line.y.at(-1) ?? null),
        formatNumber(summary.min ?? null),
        formatNumber(summary.max ?? null),
        summary.last_step?.toLocaleString("en") ?? "",
        summary.count?.toLocaleString("en") ?? "",
        markCount,
      ];
    });
    writeValueTable(this, ["Last", "Lowest", "Highest", "Step", "Points", "Not a number"], rows);
  }

  #lineSummaries() {
    return this.lines.map(
      (line) => this.summaries.get(line.id) ?? { last: line.y.at(-1) ?? null, min: null, max: null },
    );
  }

  #emptyText({ from, isLog }) {
    if (from !== null) return "No points in this span.";
    return isLog ? "Nothing above 0 to show on a logarithmic axis." : "All its runs are hidden.";
  }

  #traces(line) {
    const { smoothing, isLogY } = this.view;
    const base = { type: "scatter", hoverinfo: "skip", cliponaxis: true, connectgaps: false };
    const trace = (values, style, more = {}) => {
      const [x, all] = line.withGaps(values);
      // 0 and below have no logarithm: a gap, where Plotly would draw a line down to the axis.
      const y = isLogY ? all.map((value) => (value > 0 ? value : null)) : all;
      return {
        ...base,
        mode: x.length < SPARSE && !line.low ? "lines+markers" : "lines",
        x,
        y,
        line: { color: line.color, dash: line.dash, width: 1.5, ...style },
        marker: { color: style.color ?? line.color, size: 4 },
        ...more,
      };
    };
    if (line.low) {
      const band = {
        type: "scatter",
        mode: "lines",
        hoverinfo: "skip",
        line: { width: 0 },
        fill: "toself",
        fillcolor: withOpacity(line.color, 0.16),
        x: [...line.x, ...[...line.x].reverse()],
        y: [...line.high, ...[...line.low].reverse()],
      };
      line.traces = [band, trace(line.y, {})];
    } else if (smoothing) {
      line.traces = [
        trace(line.y, { color: withOpacity(line.color, FAINT_OPACITY), dash: "solid", width: 1 }),
        trace(line.smoothedValues(smoothing), { width: 1.75 }),
      ];
    } else {
      line.traces = [trace(line.y, {})];
    }
    return line.traces;
  }

  /** Marks on the x axis for values that cannot be drawn; those of +Infinity are at the top. */
  #markTraces() {
    return this.lines
      .filter((line) => line.marks.length)
      .map((line) => ({
        type: "scatter",
        mode: "markers",
        yaxis: "y2",
        hoverinfo: "skip",
        cliponaxis: false,
        x: line.marks.map(([x]) => x),
        y: line.marks.map(([, kind]) => (kind === "Infinity" ? 0.97 : 0.03)),
        marker: { color: line.color, size: 7, symbol: line.marks.map(([, kind]) => SYMBOLS[kind] ?? "x") },
      }));
  }

  /** On a logarithmic axis Plotly would choose more ticks than there is room for. */
  #yTicks([low, high]) {
    const maxTicks = this.plot.clientHeight > 200 ? 8 : 5;
    if (!this.view.isLogY || high - low < 0.5) return { nticks: maxTicks };
    return { dtick: high - low < 1.5 ? "D2" : Math.max(1, Math.ceil((high - low) / maxTicks)) };
  }

  #layout(axis) {
    const { palette, from, to, isLog, isLogY, width } = this.view;
    const range = yRange(this.lines, this.view);
    const base = {
      fixedrange: true,
      zeroline: false,
      gridcolor: palette.line,
      linecolor: palette.line,
      color: palette.muted,
    };
    return {
      width,
      height: this.plot.clientHeight,
      margin: { ...MARGIN, pad: 0, autoexpand: false },
      showlegend: false,
      hovermode: false,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: palette.sans, size: 11, color: palette.muted },
      xaxis: {
        ...base,
        type: isLog ? "log" : "linear",
        range: isLog ? [Math.log10(from), Math.log10(to)] : [from, to],
        ticks: "",
        showline: true,
        tickangle: 0,
        ...axis.ticks(this.view, width - MARGIN.l - MARGIN.r),
      },
      yaxis: { ...base, type: isLogY ? "log" : "linear", range, tickformat: "~g", ...this.#yTicks(range) },
      yaxis2: { overlaying: "y", range: [0, 1], visible: false, fixedrange: true },
      datarevision: (this.revision += 1),
    };
  }
}

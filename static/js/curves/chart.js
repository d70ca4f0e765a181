// A chart of one or several metrics: a line for each run and metric, its average on top, and marks where a value is not
// a number.

import { withOpacity } from "../charts/palette.js";
import { Panel } from "../charts/panel.js";
import { writeValueTable } from "../charts/table.js";
import { textsAt, visibleEvents } from "./annotations.js";
import { axisOf, metricOfAxis } from "./axes.js";
import { chartLayout } from "./chart-layout.js";
import { titleOf } from "./metric-units.js";
import { formatNumber, formatNumberRange } from "./numbers.js";
import { xRange, yRange } from "./ranges.js";

const CONFIG = { staticPlot: true, displayModeBar: false, responsive: false };
const SYMBOLS = { NaN: "x", Infinity: "triangle-up", "-Infinity": "triangle-down" };
const FAINT_OPACITY = 0.28;
const SPARSE = 30; // fewer points than this are drawn as points, too

export class CurveChart extends Panel {
  /** `keys`: its metrics. `tools`: elements for the end of its head. */
  constructor(keys, label, parent, tools) {
    super({ label, unit: "", metrics: keys.map((key) => ({ key })) }, parent);
    this.keys = keys;
    this.summaries = new Map();
    this.available = [];
    this.element.hidden = false;
    this.element.classList.add("cv-chart");
    this.element.querySelector(".ch-title").title = keys.join(", ");
    this.note = document.createElement("p");
    this.note.className = "cv-nothing";
    this.plot.append(this.note);
    this.element.querySelector("figcaption").append(...tools);
  }

  /** What the hub says about a whole curve: {key, last, min, max, last_step, count}. `id`: of its run. */
  setSummary(id, summary) {
    this.summaries.set(`${id} ${summary.key}`, summary);
  }

  /** Selects the lines to draw from `available`, in the order of the legend. */
  selectLines(legend, palette) {
    this.lines = [...legend.chips.keys()].flatMap((id) => {
      if (!legend.isVisible(id)) return [];
      return this.available
        .filter((line) => line.id === id && !line.isEmpty)
        .map((line) => Object.assign(line, this.styleOf(line, palette), { label: this.labelOf(line, legend) }));
    });
  }

  /** Returns {color, dash}: one colour for each run on the whole page. */
  styleOf(line, palette) {
    return palette.styleOf(line.id);
  }

  labelOf(line, legend) {
    return legend.chips.size > 1 ? legend.names.get(line.id).label : "";
  }

  /** view: {axis, smoothing, isLog (of x), isLogY, from, to (a span, or null), palette, events (of annotations.js)}. */
  draw(Plotly, view) {
    this.needsDraw = false;
    this.note.textContent = this.isEmpty && this.isLoaded ? this.#emptyText(view) : "";
    this.view = this.isEmpty ? null : { ...view, ...xRange(this.lines, view), width: this.plot.clientWidth };
    if (this.isEmpty) {
      Plotly.purge(this.drawing);
      this.showReadout();
      return;
    }
    const axis = axisOf(view.axis);
    this.view.formatX = (at) => axis.format(at, this.view.to - this.view.from);
    this.view.events = visibleEvents(view.events, this.view);
    Plotly.react(
      this.drawing,
      [...this.lines.flatMap((line) => this.#traces(line)), ...this.#markTraces()],
      chartLayout({
        view: this.view,
        range: yRange(this.lines, this.view),
        axis,
        titles: { x: axis.title, y: titleOf(this.keys) },
        size: { width: this.plot.clientWidth, height: this.plot.clientHeight },
        revision: (this.revision += 1),
      }),
      CONFIG,
    );
    this.plot.setAttribute(
      "aria-label",
      `${this.spec.label}: ${this.lines.length} line${this.lines.length === 1 ? "" : "s"}, now ${this.readoutOfSpan()}`,
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

  showCrosshair(at, x) {
    super.showCrosshair(at, x);
    if (at === null) this.showReadout();
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

  /** Returns sentences about what happened at a place of the x axis. */
  eventsAt(at) {
    return textsAt(this.view.events, at, this.view);
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
      const summary = this.#summaryOf(line) ?? {};
      const markCount = line.marks.length ? `${line.marks.length}` : "";
      return [
        line.label || line.key,
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

  #summaryOf(line) {
    return this.summaries.get(`${line.id} ${line.key}`);
  }

  #lineSummaries() {
    return this.lines.map(
      (line) => this.#summaryOf(line) ?? { last: line.y.at(-1) ?? null, min: null, max: null },
    );
  }

  #emptyText({ axis, from, isLog }) {
    if (from !== null) return "No points in this span.";
    if (!this.available.length && metricOfAxis(axis) !== null)
      return `No run here has logged ${[metricOfAxis(axis), ...this.keys].join(" and ")}.`;
    if (!this.available.length) return `No run here has logged ${this.keys.join(" or ")}.`;
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
}

// One metric as a chart: a line for every run, its average on top, marks where it is no number.

import { faded } from "../charts/palette.js";
import { MARGIN, Panel } from "../charts/panel.js";
import { writeRows } from "../charts/table.js";
import { AXIS } from "./axes.js";
import { number, span } from "./numbers.js";

const CONFIG = { staticPlot: true, displayModeBar: false, responsive: false };
const SYMBOLS = { NaN: "x", Infinity: "triangle-up", "-Infinity": "triangle-down" };
const FAINT = 0.28;
const SPARSE = 30; // so few points are shown as points, too

export class Chart extends Panel {
  /** `facts`: what the hub tells of the whole curve, {run: {last, min, max, last_step, count}}. */
  constructor(key, label, parent, widen) {
    super({ key, label, unit: "", metrics: [{ key }] }, parent);
    this.key = key;
    this.facts = new Map();
    this.found = [];
    this.element.hidden = false;
    this.element.classList.add("cv-chart");
    this.element.dataset.key = key;
    this.element.querySelector(".ch-title").title = key;
    this.note = document.createElement("p");
    this.note.className = "cv-nothing";
    this.plot.append(this.note);
    this.element.querySelector("figcaption").append(widen);
  }

  /** Which of the lines that are known are drawn, in the order of the legend. */
  choose(legend, palette) {
    this.lines = [...legend.chips.keys()].flatMap((id) => {
      if (!legend.shows(id)) return [];
      return this.found.filter((line) => line.id === id && !line.isEmpty).map((line) => {
        const { color, dash } = palette.of(id);
        return Object.assign(line, { color, dash, label: legend.chips.size > 1 ? legend.named.get(id).label : "" });
      });
    });
  }

  /** view: {axis, smoothing, isLog (of x), isLogY, from, to (a span, or null), palette}. */
  draw(Plotly, view) {
    this.isDue = false;
    this.note.textContent = this.isEmpty && this.isLoaded ? this.#nothing(view) : "";
    this.view = this.isEmpty ? null : { ...view, ...this.#reach(view), width: this.plot.clientWidth };
    if (this.isEmpty) {
      Plotly.purge(this.drawing);
      this.tell();
      return;
    }
    const axis = AXIS[view.axis];
    this.view.moment = (at) => axis.moment(at, this.view.to - this.view.from);
    Plotly.react(this.drawing, [...this.lines.flatMap((line) => this.#traces(line)), ...this.#marks()], this.#layout(axis), CONFIG);
    this.plot.setAttribute("aria-label", `${this.key}: ${this.lines.length} line${this.lines.length === 1 ? "" : "s"}, now ${this.now()}`);
    this.tell();
  }

  now() {
    return span(this.#known().map(({ last }) => last));
  }

  tell() {
    if (this.at !== null && this.at !== undefined) return;
    const known = this.#known();
    const numbers = (name) => known.map((fact) => fact[name]).filter(Number.isFinite);
    const [low, high] = [Math.min(...numbers("min")), Math.max(...numbers("max"))];
    this.read.textContent = this.now();
    const more = document.createElement("small");
    more.textContent = Number.isFinite(low) && low < high ? ` ${number(low)} … ${number(high)}` : "";
    more.title = "Lowest and highest of the whole curve";
    this.read.append(more);
  }

  near(at) {
    return span(this.values(at).map(({ mean }) => mean));
  }

  values(at) {
    return this.lines.map((line) => {
      const found = line.at(at, this.view, this.view.smoothing);
      const { label, color, dash } = line;
      const beside = line.low ? found?.spread : this.view.smoothing ? found?.raw : null;
      return { label, color, dash, mean: found?.value ?? null, max: beside ?? null };
    });
  }

  word(value) {
    return number(value);
  }

  beside(mean, more) {
    if (more === null || more === undefined) return "";
    return this.lines.some((line) => line.low) ? `± ${number(more)}` : number(more);
  }

  highlight(id) {
    const drawn = this.drawing.querySelectorAll(".subplot.xy .scatterlayer > .trace");
    this.lines.flatMap((line) => line.traces.map(() => line.id)).forEach((own, place) => {
      if (drawn[place]) drawn[place].style.opacity = id === null || own === id ? 1 : 0.12;
    });
  }

  writeTable() {
    const rows = this.lines.map((line) => {
      const fact = this.facts.get(line.id) ?? {};
      const kinds = line.marks.length ? `${line.marks.length}` : "";
      return [line.label || this.key, number(fact.last ?? line.y.at(-1) ?? null), number(fact.min ?? null), number(fact.max ?? null), fact.last_step?.toLocaleString("en") ?? "", fact.count?.toLocaleString("en") ?? "", kinds];
    });
    writeRows(this, ["Last", "Lowest", "Highest", "Step", "Points", "No number"], rows);
  }

  #known() {
    return this.lines.map((line) => this.facts.get(line.id) ?? { last: line.y.at(-1) ?? null, min: null, max: null });
  }

  #nothing({ from, isLog }) {
    if (from !== null) return "No points in this span.";
    return isLog ? "Nothing above 0 to show on a logarithmic axis." : "All its runs are hidden.";
  }

  /** The span that is asked for, or all that there is. A logarithmic axis begins where x is above 0. */
  #reach({ from, to, isLog }) {
    const xs = this.lines.flatMap((line) => [line.x[0], line.x.at(-1), line.marks[0]?.[0], line.marks.at(-1)?.[0]]).filter(Number.isFinite);
    let [low, high] = [from ?? Math.min(...xs), to ?? Math.max(...xs)];
    if (isLog && low <= 0) low = Math.min(...this.lines.map((line) => line.x.find((x) => x > 0) ?? Infinity), high);
    if (isLog && !(low > 0)) return { from: 1, to: 10 };
    if (high <= low) [low, high] = isLog ? [low / 2, low * 2] : [low - 0.5, low + 0.5];
    return { from: low, to: high };
  }

  #traces(line) {
    const { smoothing, isLogY } = this.view;
    const base = { type: "scatter", hoverinfo: "skip", cliponaxis: true, connectgaps: false };
    const trace = (values, look, more = {}) => {
      const [x, all] = line.broken(values);
      // A logarithm that is not there is a gap; plotly would draw down to the axis.
      const y = isLogY ? all.map((value) => (value > 0 ? value : null)) : all;
      return { ...base, mode: x.length < SPARSE && !line.low ? "lines+markers" : "lines", x, y, line: { color: line.color, dash: line.dash, width: 1.5, ...look }, marker: { color: look.color ?? line.color, size: 4 }, ...more };
    };
    if (line.low) {
      const band = { type: "scatter", mode: "lines", hoverinfo: "skip", line: { width: 0 }, fill: "toself", fillcolor: faded(line.color, 0.16), x: [...line.x, ...[...line.x].reverse()], y: [...line.high, ...[...line.low].reverse()] };
      line.traces = [band, trace(line.y, {})];
    } else if (smoothing) {
      line.traces = [trace(line.y, { color: faded(line.color, FAINT), dash: "solid", width: 1 }), trace(line.shown(smoothing), { width: 1.75 })];
    } else {
      line.traces = [trace(line.y, {})];
    }
    return line.traces;
  }

  /** On the axis, below: what cannot be drawn at its height. Infinity points up from it. */
  #marks() {
    return this.lines.filter((line) => line.marks.length).map((line) => ({
      type: "scatter", mode: "markers", yaxis: "y2", hoverinfo: "skip", cliponaxis: false, x: line.marks.map(([x]) => x),
      y: line.marks.map(([, kind]) => (kind === "Infinity" ? 0.97 : 0.03)),
      marker: { color: line.color, size: 7, symbol: line.marks.map(([, kind]) => SYMBOLS[kind] ?? "x") },
    }));
  }

  #yRange() {
    const { from, to, isLogY, smoothing } = this.view;
    let [low, high] = [Infinity, -Infinity];
    const take = (value) => {
      if (value === null || !Number.isFinite(value) || (isLogY && value <= 0)) return;
      low = Math.min(low, value);
      high = Math.max(high, value);
    };
    for (const line of this.lines) {
      const rows = line.low ? [line.low, line.high] : smoothing ? [line.y, line.shown(smoothing)] : [line.y];
      for (let place = 0; place < line.x.length; place += 1) {
        // The ones next to the span are drawn towards.
        if ((line.x[place + 1] ?? line.x[place]) < from || (line.x[place - 1] ?? line.x[place]) > to) continue;
        for (const row of rows) take(row[place]);
      }
    }
    if (!Number.isFinite(high)) return [0, 1];
    if (isLogY) [low, high] = [Math.log10(low), Math.log10(high)];
    const room = high > low ? (high - low) * 0.06 : Math.max(Math.abs(high) * 0.1, isLogY ? 0.5 : 1e-9);
    return [low - room, high + room];
  }

  /** Plotly's own choice puts more words on a logarithmic axis than have room there. */
  #yTicks([low, high]) {
    const most = this.plot.clientHeight > 200 ? 8 : 5;
    if (!this.view.isLogY || high - low < 0.5) return { nticks: most };
    return { dtick: high - low < 1.5 ? "D2" : Math.max(1, Math.ceil((high - low) / most)) };
  }

  #layout(axis) {
    const { palette, from, to, isLog, isLogY, width } = this.view;
    const yRange = this.#yRange();
    const base = { fixedrange: true, zeroline: false, gridcolor: palette.line, linecolor: palette.line, color: palette.muted };
    return {
      width, height: this.plot.clientHeight, margin: { ...MARGIN, pad: 0, autoexpand: false }, showlegend: false, hovermode: false,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { family: palette.sans, size: 11, color: palette.muted },
      xaxis: {
        ...base, type: isLog ? "log" : "linear", range: isLog ? [Math.log10(from), Math.log10(to)] : [from, to], ticks: "", showline: true,
        tickangle: 0, ...axis.ticks(this.view, width - MARGIN.l - MARGIN.r),
      },
      yaxis: { ...base, type: isLogY ? "log" : "linear", range: yRange, tickformat: "~g", ...this.#yTicks(yRange) },
      yaxis2: { overlaying: "y", range: [0, 1], visible: false, fixedrange: true },
      datarevision: (this.revision += 1),
    };
  }
}

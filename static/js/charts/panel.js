// One chart: a metric (or a few) of many subjects over time. Draws what it is given; the grid decides when.

import { faded } from "./palette.js";
import { HOST } from "./series.js";
import { scale, shown, span } from "./units.js";
import { newest } from "./table.js";

export const MARGIN = { l: 56, r: 10, t: 8, b: 20 };
const HEIGHT = 150;
const MOST_BANDS = 3; // more maxima on top of each other tell nothing
const CONFIG = { staticPlot: true, displayModeBar: false, responsive: false };
let number = 0;

export class Panel {
  /**
   * `spec`: {label, unit, scope: "gpu"|"host", metrics: [{key, label}], limit?: key, limit_label?, quiet?: bool}. `limit` is a metric
   * or a fact of the subjects ("memory_bytes"), drawn as a dotted line; a quiet panel shows only where a value is not 0.
   */
  constructor(spec, parent) {
    this.spec = spec;
    this.id = `chart-${(number += 1)}`;
    this.element = document.createElement("figure");
    this.element.className = "ch-panel";
    this.element.hidden = true;
    this.element.innerHTML = `<figcaption id="${this.id}"><span class="ch-title"></span><span class="ch-keys"></span><span class="ch-read"></span></figcaption>
      <div class="ch-plot" tabindex="0" role="group"><div class="ch-drawing" aria-hidden="true"></div><div class="ch-cross" hidden></div><div class="ch-chosen" hidden></div></div>
      <div class="ch-values"></div>`;
    this.element.querySelector(".ch-title").textContent = spec.label;
    this.plot = this.element.querySelector(".ch-plot");
    this.drawing = this.element.querySelector(".ch-drawing");
    this.read = this.element.querySelector(".ch-read");
    this.plot.setAttribute("aria-describedby", this.id);
    this.lines = [];
    this.limit = null;
    this.revision = 0;
    parent.append(this.element);
  }

  get isEmpty() {
    return this.lines.length === 0;
  }

  /** Which lines there are to draw: [{source, subject, id, row, label, color, dash}]. Shows or hides the panel. */
  collect(sources, legend, palette) {
    const { spec } = this;
    this.lines = sources.flatMap((source) => {
      const subjects = spec.scope === "host" ? [HOST] : source.gpus.map((gpu) => gpu.uuid);
      return subjects.flatMap((subject) => {
        const id = subject === HOST ? source.node : subject;
        if (!legend.shows(id)) return [];
        return spec.metrics
          .map((metric, place) => ({ metric, place }))
          .filter(({ metric }) => source.has(subject, metric.key))
          .map(({ metric, place }) => ({
            source, subject, id, metric, row: source.row(subject, metric.key),
            label: [legend.label(id, spec.scope, sources.length), spec.metrics.length > 1 && metric.label].filter(Boolean).join(" "),
            ...look(spec, id, place, sources.length, palette),
          }));
      });
    });
    const isQuiet = spec.quiet && this.lines.every(({ row }) => row.max.every((value) => !value));
    if (isQuiet) this.lines = [];
    this.element.hidden = this.isEmpty;
    this.#keys();
  }

  /** view: {from, to, ticks, palette, bands, legend, width}. */
  draw(Plotly, view) {
    this.view = view;
    this.isDue = false;
    if (this.isEmpty) return;
    const range = this.#range(view);
    const { by, unit } = scale(this.spec.unit, Math.max(Math.abs(range[0]), range[1]));
    const traces = [...this.#bands(view, by), ...this.lines.map((line) => trace(line, by))];
    if (this.limit !== null) traces.push(limitTrace(view, this.limit / by));
    Plotly.react(this.drawing, traces, this.#layout(view, range.map((value) => value / by), unit), CONFIG);
    this.plot.setAttribute("aria-label", `${this.spec.label}: ${this.lines.length} line${this.lines.length === 1 ? "" : "s"}, now ${this.now()}`);
    this.tell();
  }

  now() {
    return span(this.lines.map(({ row }) => newest(row)), this.spec.unit);
  }

  /** The newest values, unless the cross-hair tells others. */
  tell() {
    if (!this.at && !this.isEmpty) this.read.textContent = this.now();
  }

  /** Shows the cross-hair at `at`, or without it the newest values. */
  cross(at, x) {
    this.at = at;
    const line = this.plot.querySelector(".ch-cross");
    line.hidden = at === null;
    if (at === null) {
      this.read.textContent = this.now();
      return;
    }
    line.style.transform = `translateX(${Math.round(x)}px)`;
    this.read.textContent = this.near(at);
  }

  near(at) {
    return span(this.values(at).map(({ mean }) => mean), this.spec.unit);
  }

  /** Every line's value at a moment: [{label, color, dash, mean, max}]. */
  values(at) {
    return this.lines.map(({ source, row, label, color, dash }) => {
      const place = source.nearest(at);
      return { label, color, dash, mean: place < 0 ? null : row.mean[place], max: place < 0 ? null : row.max[place] };
    });
  }

  word(value) {
    return shown(value, this.spec.unit);
  }

  /** What stands small beside a value, where there is more to say. */
  beside(mean, max) {
    return max !== null && mean !== null && max > mean * 1.02 + 0.5 ? `max ${this.word(max)}` : "";
  }

  /** Dims all lines but those of one subject; null brings them back. No redraw. */
  highlight(id) {
    const drawn = this.drawing.querySelectorAll(".scatterlayer > .trace");
    const fills = drawn.length - this.lines.length - (this.limit === null ? 0 : 1);
    this.lines.forEach((line, place) => {
      const group = drawn[fills + place];
      if (group) group.style.opacity = id === null || line.id === id ? 1 : 0.12;
    });
  }

  clear(Plotly) {
    Plotly?.purge(this.drawing);
  }

  #keys() {
    const keys = this.element.querySelector(".ch-keys");
    if (this.spec.metrics.length < 2 || this.isEmpty) {
      keys.textContent = "";
      return;
    }
    const seen = new Map(this.lines.map((line) => [line.metric.key, line]));
    keys.replaceChildren(...[...seen.values()].map((line) => {
      const key = document.createElement("span");
      key.append(swatch(line), line.metric.label);
      return key;
    }));
  }

  #limit(view) {
    const { limit } = this.spec;
    if (!limit) return null;
    const whole = this.lines.filter(({ id }) => !view.legend.fact(id, "is_part"));
    const values = (whole.length ? whole : this.lines).map(({ source, subject, id }) => {
      const row = source.row(subject, limit);
      return row ? Math.max(...row.mean.filter((value) => value !== null)) : view.legend.fact(id, limit);
    });
    const known = values.filter((value) => Number.isFinite(value));
    // One line for all of them; where they differ there is none that fits.
    return known.length && new Set(known.map(Math.round)).size === 1 ? known[0] : null;
  }

  #range(view) {
    const { unit } = this.spec;
    this.limit = null;
    if (unit === "%") return [0, 100];
    let [low, high] = [Infinity, -Infinity];
    for (const { row, source } of this.lines) {
      const values = this.lines.length <= MOST_BANDS ? row.max : row.mean;
      for (let place = 0; place < values.length; place += 1) {
        const at = source.times[place];
        if (at < view.from || at > view.to || values[place] === null) continue;
        low = Math.min(low, row.mean[place] ?? values[place]);
        high = Math.max(high, values[place]);
      }
    }
    if (!Number.isFinite(high)) return [0, 1];
    this.limit = this.#limit(view);
    high = Math.max(high, this.limit ?? high);
    if (unit === "°C" || unit === "MHz") {
      const room = Math.max((high - low) * 0.12, unit === "MHz" ? 50 : 3);
      return [Math.max(0, low - room), high + room];
    }
    return [0, high > 0 ? high * 1.06 : 1];
  }

  /** The room between mean and maximum, while few enough lines are shown: closed shapes, one per stretch without a gap. */
  #bands(view, by) {
    if (this.lines.length > MOST_BANDS) return [];
    return this.lines.map((line) => {
      const [x, y] = outline(line, by);
      return {
        type: "scatter", mode: "lines", x, y, fill: "toself", fillcolor: faded(line.color, 0.16), line: { width: 0 }, hoverinfo: "skip",
      };
    });
  }

  #layout(view, range, unit) {
    const { palette } = view;
    const axis = { fixedrange: true, zeroline: false, gridcolor: palette.line, linecolor: palette.line, color: palette.muted };
    return {
      width: view.width, height: HEIGHT, margin: { ...MARGIN, pad: 0, autoexpand: false }, showlegend: false, hovermode: false,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { family: palette.sans, size: 11, color: palette.muted },
      xaxis: {
        ...axis, type: "linear", range: [view.from, view.to], tickmode: "array", ticks: "", showline: true,
        tickvals: view.ticks.map(([at]) => at), ticktext: view.ticks.map(([, label]) => label), tickangle: 0,
      },
      yaxis: { ...axis, type: "linear", range, nticks: 4, ticksuffix: unit && ` ${unit}`, showticksuffix: "last", tickformat: "~r" },
      shapes: view.bands.map((band) => ({
        type: "rect", layer: "below", xref: "x", yref: "paper", x0: band.from, x1: band.to, y0: 0, y1: 1, line: { width: 0 },
        fillcolor: faded(palette.tone(band.tone ?? "running"), 0.07),
      })),
      datarevision: (this.revision += 1),
    };
  }
}

/** A short piece of a line, for legends and tooltips. */
export function swatch({ color, dash }) {
  const mark = document.createElement("i");
  mark.className = `ch-swatch ch-${dash}`;
  mark.style.setProperty("--line", color);
  return mark;
}

function look(spec, id, place, nodes, palette) {
  if (spec.scope === "gpu") return { ...palette.of(id), ...(place ? { dash: "dot" } : {}) };
  if (nodes > 1) return { ...palette.of(id), ...(place ? { dash: "dot" } : {}) };
  return { color: palette.machine[place % palette.machine.length], dash: place ? "dash" : "solid" };
}

function trace({ source, row, color, dash }, by) {
  const y = by === 1 ? row.mean : row.mean.map((value) => (value === null ? null : value / by));
  const isSparse = row.mean.length < 4;
  return {
    type: "scatter", mode: isSparse ? "lines+markers" : "lines", x: source.times, y, connectgaps: false, cliponaxis: false, hoverinfo: "skip",
    line: { color, dash, width: 1.5 }, marker: { color, size: 4 },
  };
}

function limitTrace(view, at) {
  return {
    type: "scatter", mode: "lines", x: [view.from, view.to], y: [at, at], hoverinfo: "skip",
    line: { color: view.palette.muted, dash: "dot", width: 1 },
  };
}

function outline({ source, row }, by) {
  const [x, y] = [[], []];
  let begin = -1;
  for (let place = 0; place <= row.mean.length; place += 1) {
    const isKnown = place < row.mean.length && row.mean[place] !== null && row.max[place] !== null;
    if (isKnown && begin < 0) begin = place;
    if (isKnown || begin < 0) continue;
    for (let at = begin; at < place; at += 1) {
      x.push(source.times[at]);
      y.push(row.max[at] / by);
    }
    for (let at = place - 1; at >= begin; at -= 1) {
      x.push(source.times[at]);
      y.push(row.mean[at] / by);
    }
    x.push(null);
    y.push(null);
    begin = -1;
  }
  return [x, y];
}

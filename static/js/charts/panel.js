// One chart: one or a few metrics of many subjects over time. The grid decides when it is drawn.

import { withOpacity } from "./palette.js";
import { HOST } from "./series.js";
import { unitScale, formatValue, formatValueRange } from "./units.js";
import { newestValue, summarizeSpan } from "./table.js";
import { MAX_BANDS, bandTraces, limitTrace, lineTrace } from "./traces.js";

export const MARGIN = { l: 56, r: 10, t: 8, b: 20 };
const HEIGHT = 150;
let lastId = 0;

export class Panel {
  /**
   * `spec`: {label, unit, scope: "gpu"|"host", metrics: [{key, label}], limit?: key, limit_label?, quiet?: bool}.
   * `limit` is a metric or a property of the subjects ("memory_bytes"), drawn as a dotted line. A quiet panel is only
   * shown if a value is not 0.
   */
  constructor(spec, parent) {
    this.spec = spec;
    this.id = `chart-${(lastId += 1)}`;
    this.element = document.createElement("figure");
    this.element.className = "ch-panel";
    this.element.hidden = true;
    this.element.innerHTML = `
      <figcaption id="${this.id}">
        <span class="ch-title"></span><span class="ch-keys"></span><span class="ch-read"></span>
      </figcaption>
      <div class="ch-plot" tabindex="0" role="group">
        <div class="ch-drawing" aria-hidden="true"></div>
        <div class="ch-cross" hidden></div>
        <div class="ch-chosen" hidden></div>
      </div>
      <div class="ch-values"></div>`;
    this.element.querySelector(".ch-title").textContent = spec.label;
    this.plot = this.element.querySelector(".ch-plot");
    this.drawing = this.element.querySelector(".ch-drawing");
    this.readout = this.element.querySelector(".ch-read");
    this.plot.setAttribute("aria-describedby", this.id);
    this.lines = [];
    this.limit = null;
    this.revision = 0;
    parent.append(this.element);
  }

  get isEmpty() {
    return this.lines.length === 0;
  }

  /** Collects the lines to draw: [{source, subject, id, row, label, color, dash}]. Shows or hides the panel. */
  collect(sources, legend, palette) {
    const { spec } = this;
    this.lines = sources.flatMap((source) => {
      const subjects = spec.scope === "host" ? [HOST] : source.gpus.map((gpu) => gpu.uuid);
      return subjects.flatMap((subject) => {
        const id = subject === HOST ? source.node : subject;
        if (!legend.isVisible(id)) return [];
        return spec.metrics
          .map((metric, index) => ({ metric, index }))
          .filter(({ metric }) => source.has(subject, metric.key))
          .map(({ metric, index }) => ({
            source,
            subject,
            id,
            metric,
            row: source.row(subject, metric.key),
            label: [legend.label(id, spec.scope, sources.length), spec.metrics.length > 1 && metric.label]
              .filter(Boolean)
              .join(" "),
            ...lineStyle(spec, id, index, sources.length, palette),
          }));
      });
    });
    const isQuiet = spec.quiet && this.lines.every(({ row }) => row.max.every((value) => !value));
    if (isQuiet) this.lines = [];
    this.element.hidden = this.isEmpty;
    this.#drawKeys();
  }

  /** `plotter`: Plotly, or what draws like it. view: {from, to, ticks, palette, bands, legend, width, isLive}. */
  draw(plotter, view) {
    this.view = view;
    this.needsDraw = false;
    if (this.isEmpty) return;
    const range = this.#range(view);
    const { divisor, unit } = unitScale(this.spec.unit, Math.max(Math.abs(range[0]), range[1]));
    const traces = [...bandTraces(this.lines, divisor), ...this.lines.map((line) => lineTrace(line, divisor))];
    if (this.limit !== null) traces.push(limitTrace(view, this.limit / divisor));
    plotter.react(
      this.drawing,
      traces,
      this.#layout(
        view,
        range.map((value) => value / divisor),
        unit,
      ),
    );
    this.plot.setAttribute(
      "aria-label",
      [
        `${this.spec.label}: ${this.lines.length} line${this.lines.length === 1 ? "" : "s"},`,
        `${view.isLive ? "now " : ""}${this.readoutOfSpan()}`,
      ].join(" "),
    );
    this.showReadout();
  }

  /** Returns the newest values; of what has ended, the mean and the peak. */
  readoutOfSpan() {
    if (this.view && !this.view.isLive) {
      const { mean, max } = summarizeSpan(this.lines);
      return `mean ${formatValue(mean, this.spec.unit)}, peak ${formatValue(max, this.spec.unit)}`;
    }
    return formatValueRange(
      this.lines.map(({ row }) => newestValue(row)),
      this.spec.unit,
    );
  }

  /** Shows the values of the span, unless the cross-hair shows others. */
  showReadout() {
    if (!this.crosshairAt && !this.isEmpty) this.readout.textContent = this.readoutOfSpan();
  }

  /** Shows the cross-hair at the value `at` and the pixel `x`, or the values of the span if `at` is null. */
  showCrosshair(at, x) {
    this.crosshairAt = at;
    const line = this.plot.querySelector(".ch-cross");
    line.hidden = at === null;
    if (at === null) {
      this.readout.textContent = this.readoutOfSpan();
      return;
    }
    line.style.transform = `translateX(${Math.round(x)}px)`;
    this.readout.textContent = this.readoutAt(at);
  }

  readoutAt(at) {
    return formatValueRange(
      this.valuesAt(at).map(({ mean }) => mean),
      this.spec.unit,
    );
  }

  /** Returns every line's value at a moment: [{label, color, dash, mean, max}]. */
  valuesAt(at) {
    return this.lines.map(({ source, row, label, color, dash }) => {
      const index = source.nearestIndex(at);
      return { label, color, dash, mean: index < 0 ? null : row.mean[index], max: index < 0 ? null : row.max[index] };
    });
  }

  format(value) {
    return formatValue(value, this.spec.unit);
  }

  /** Returns the small text beside a value, or "". */
  detail(mean, max) {
    return max !== null && mean !== null && max > mean * 1.02 + 0.5 ? `max ${this.format(max)}` : "";
  }

  /** Dims all lines but those of one subject, without drawing again. null ends it. */
  highlight(id) {
    const elements = this.drawing.querySelectorAll(".scatterlayer > .trace");
    const bandCount = elements.length - this.lines.length - (this.limit === null ? 0 : 1);
    this.lines.forEach((line, index) => {
      const group = elements[bandCount + index];
      if (group) group.style.opacity = id === null || line.id === id ? 1 : 0.12;
    });
  }

  clear(plotter) {
    plotter?.purge(this.drawing);
  }

  #drawKeys() {
    const keys = this.element.querySelector(".ch-keys");
    if (this.spec.metrics.length < 2 || this.isEmpty) {
      keys.textContent = "";
      return;
    }
    const seen = new Map(this.lines.map((line) => [line.metric.key, line]));
    keys.replaceChildren(
      ...[...seen.values()].map((line) => {
        const key = document.createElement("span");
        key.append(swatch(line), line.metric.label);
        return key;
      }),
    );
  }

  #limit(view) {
    const { limit } = this.spec;
    if (!limit) return null;
    const whole = this.lines.filter(({ id }) => !view.legend.property(id, "is_part"));
    const values = (whole.length ? whole : this.lines).map(({ source, subject, id }) => {
      const row = source.row(subject, limit);
      return row ? Math.max(...row.mean.filter((value) => value !== null)) : view.legend.property(id, limit);
    });
    const numbers = values.filter((value) => Number.isFinite(value));
    // One line for all subjects; if their limits differ, there is none.
    return numbers.length && new Set(numbers.map(Math.round)).size === 1 ? numbers[0] : null;
  }

  #range(view) {
    const { unit } = this.spec;
    this.limit = null;
    if (unit === "%") return [0, 100];
    let [low, high] = [Infinity, -Infinity];
    for (const { row, source } of this.lines) {
      const values = this.lines.length <= MAX_BANDS ? row.max : row.mean;
      for (let index = 0; index < values.length; index += 1) {
        const at = source.times[index];
        if (at < view.from || at > view.to || values[index] === null) continue;
        low = Math.min(low, row.mean[index] ?? values[index]);
        high = Math.max(high, values[index]);
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

  #layout(view, range, unit) {
    const { palette } = view;
    const axis = { gridcolor: palette.line, color: palette.muted };
    return {
      width: view.width,
      height: HEIGHT,
      margin: MARGIN,
      font: { family: palette.sans, size: 11 },
      xaxis: {
        ...axis,
        range: [view.from, view.to],
        tickvals: view.ticks.map(([at]) => at),
        ticktext: view.ticks.map(([, label]) => label),
      },
      yaxis: { ...axis, range, nticks: 4, ticksuffix: unit && ` ${unit}` },
      shapes: view.bands.map(({ from, to, tone }) => ({
        x0: from,
        x1: to,
        fillcolor: withOpacity(palette.tone(tone ?? "running"), 0.07),
      })),
    };
  }
}

/** Returns a short piece of a line, for legends and tooltips. */
export function swatch({ color, dash }) {
  const mark = document.createElement("i");
  mark.className = `ch-swatch ch-${dash}`;
  mark.style.setProperty("--line", color);
  return mark;
}

function lineStyle(spec, id, index, nodes, palette) {
  if (spec.scope === "gpu") return { ...palette.styleOf(id), ...(index ? { dash: "dot" } : {}) };
  if (nodes > 1) return { ...palette.styleOf(id), ...(index ? { dash: "dot" } : {}) };
  return { color: palette.hostColors[index % palette.hostColors.length], dash: index ? "dash" : "solid" };
}

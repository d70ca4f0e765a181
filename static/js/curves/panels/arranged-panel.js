// A panel that people arranged: a chart with an x axis, metrics and scales of its own.

import { swatch } from "../../charts/panel.js";
import { axisOf, metricOfAxis } from "../axes.js";
import { CurveChart } from "../chart.js";

const DASHES = ["solid", "dash", "dot"];

export class ArrangedPanel extends CurveChart {
  /** `panel`: as the hub stores it (tracking/panels/metric_panel.py). */
  constructor(panel, parent, tools) {
    super(panel.metrics, titleOfPanel(panel), parent, tools);
    this.panel = panel;
    this.settings = { axis: panel.x, smoothing: panel.smoothing, isLog: panel.log_x, isLogY: panel.log_y };
    this.element.classList.add("cv-panel", `cv-columns-${panel.width}`);
    this.element.querySelector(".ch-title").title = describePanel(panel);
  }

  get hasSeveralMetrics() {
    return this.keys.length > 1;
  }

  selectLines(legend, palette) {
    super.selectLines(legend, palette);
    const samples = new Map(this.lines.map((line) => [line.key, line]));
    const keys = this.hasSeveralMetrics ? this.keys.filter((key) => samples.has(key)) : [];
    this.element.querySelector(".ch-keys").replaceChildren(
      ...keys.map((key) => {
        const { color, dash } = samples.get(key);
        const element = document.createElement("span");
        // With several runs the dash stands for the metric, and the colours are those of the runs.
        element.append(swatch({ color: this.#runCount() > 1 ? palette.muted : color, dash }), key);
        return element;
      }),
    );
  }

  styleOf(line, palette) {
    if (!this.hasSeveralMetrics) return super.styleOf(line, palette);
    const index = this.keys.indexOf(line.key);
    if (this.#runCount() > 1) return { ...super.styleOf(line, palette), dash: DASHES[index % DASHES.length] };
    const { series } = palette;
    return { color: series[index % series.length], dash: DASHES[Math.floor(index / series.length) % DASHES.length] };
  }

  labelOf(line, legend) {
    const run = super.labelOf(line, legend);
    return this.hasSeveralMetrics ? [run, line.key].filter(Boolean).join(" · ") : run;
  }

  showReadout() {
    if (this.hasSeveralMetrics) this.readout.textContent = "";
    else super.showReadout();
  }

  readoutAt(at) {
    // One range over different metrics would say nothing; the tooltip has each value.
    return this.hasSeveralMetrics ? "" : super.readoutAt(at);
  }

  #runCount() {
    return new Set(this.available.map(({ id }) => id)).size;
  }
}

/** Returns the title that the panel was given, or one that names its metrics. */
export function titleOfPanel({ title, metrics, x }) {
  if (title) return title;
  const names = metrics.length > 2 ? `${metrics[0]} and ${metrics.length - 1} more` : metrics.join(", ");
  return metricOfAxis(x) === null ? names : `${names} over ${metricOfAxis(x)}`;
}

function describePanel({ metrics, x }) {
  return `${metrics.join(", ")} over ${axisOf(x).title}`;
}

// The charts of a page: panels that people arranged, and one chart for each metric, grouped by the prefix before the
// slash, with their legend and cross-hair.

import { Legend } from "../charts/legend.js";
import { Palette, watchTheme } from "../charts/palette.js";
import { loadPlotly } from "../charts/plotly.js";
import { Pointer } from "../charts/pointer.js";
import { DrawQueue } from "../charts/draw-queue.js";
import { CurveChart } from "./chart.js";
import { MetricGroup, groupOf, groupAfter } from "./group.js";

const NEAR_PX = "240px";
const TABLES_AFTER_MS = 500; // draw the lines first

export class CurveGrid {
  /**
   * `root` contains [data-part=legend|groups]. `on`: {zoom(axis, from, to), zoomOut(axis), load(charts),
   * widen(chart, isWide), fold(group), hide(ids)}. `addPanel(key)`: makes a panel of a metric, or null if the reader
   * must not.
   */
  constructor(root, subjects, on, addPanel) {
    Object.assign(this, { root, on, addPanel });
    this.palette = new Palette();
    this.legend = new Legend(root.querySelector("[data-part=legend]"), {}, this.palette, {
      onToggle: () => {
        on.hide(this.legend.hidden);
        this.updateLines();
      },
      onHighlight: (id) => this.#highlight(id),
    });
    this.legend.addSubjects(subjects);
    this.pointer = new Pointer(this, root);
    this.drawQueue = new DrawQueue();
    this.groups = new Map();
    this.charts = new Map();
    this.arranged = [];
    this.chartsByElement = new WeakMap();
    this.view = { axis: "step", smoothing: 0, isLog: false, isLogY: false };
    this.spans = {};
    this.eventsOn = () => [];
    this.visibility = new IntersectionObserver((entries) => this.#handleVisibility(entries), { rootMargin: NEAR_PX });
    this.stopTheme = watchTheme(() => this.#recolor());
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(root);
  }

  /** All charts, over which the pointer moves. */
  get panels() {
    return [...this.arranged, ...this.charts.values()];
  }

  /** Returns how a chart is shown: as it says by itself, or else as all. Charts with the same axis share a span. */
  viewOf(chart) {
    const view = chart.settings ?? this.view;
    const [from, to] = this.spans[view.axis] ?? [null, null];
    return { ...view, from, to };
  }

  sharesAxis(chart, other) {
    return this.viewOf(chart).axis === this.viewOf(other).axis;
  }

  /** Takes in a panel, whose element the caller has placed. */
  addArranged(chart) {
    this.arranged.push(chart);
    this.#watch(chart);
  }

  removeArranged(chart) {
    this.arranged = this.arranged.filter((other) => other !== chart);
    this.#unwatch(chart);
  }

  /** Shows a chart for each of these metrics and for no others. */
  setKeys(keys, state) {
    const remaining = new Set(keys);
    for (const [key, chart] of this.charts) if (!remaining.has(key)) this.#removeChart(key, chart);
    for (const key of keys) if (!this.charts.has(key)) this.#addChart(key, state);
    for (const [name, group] of this.groups) {
      if (group.isEmpty) {
        group.element.remove();
        this.groups.delete(name);
      } else group.count();
    }
  }

  /** Sets how curves are shown: {axis, smoothing, isLog, isLogY}, and the spans of all axes, {axis: [from, to]}. */
  setView(view, spans) {
    Object.assign(this, { view, spans });
    this.draw();
  }

  /** `eventsOn(axis)` returns the events to mark. */
  setEvents(eventsOn) {
    this.eventsOn = eventsOn;
    this.draw();
  }

  showLines(chart, lines) {
    chart.available = lines;
    chart.isLoaded = true;
    chart.selectLines(this.legend, this.palette);
    chart.needsDraw = true;
    this.scheduleDraw();
  }

  updateLines() {
    for (const chart of this.panels) chart.selectLines(this.legend, this.palette);
    this.draw();
  }

  draw() {
    for (const chart of this.panels) chart.needsDraw = true;
    this.scheduleDraw();
  }

  scheduleDraw() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.drawPending();
    });
  }

  async drawPending() {
    const pending = this.panels.filter((chart) => chart.needsDraw && chart.isInView && chart.isLoaded);
    if (!pending.length) return;
    this.plotly ??= await loadPlotly();
    const isDone = await this.drawQueue.run(pending, (chart) =>
      chart.draw(this.plotly, this.#drawingOf(chart)),
    );
    if (!isDone) return;
    if (this.highlighted) this.#highlight(this.highlighted);
    this.tableTimer ??= setTimeout(() => {
      this.tableTimer = null;
      for (const chart of this.panels) if (chart.isInView) chart.writeTable();
    }, TABLES_AFTER_MS);
  }

  zoom(from, to, chart) {
    this.on.zoom(this.viewOf(chart).axis, from, to);
  }

  zoomOut(chart) {
    this.on.zoomOut(this.viewOf(chart).axis);
  }

  close() {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.tableTimer);
    this.stopTheme();
    this.visibility.disconnect();
    this.resized.disconnect();
    for (const chart of this.panels) chart.clear(this.plotly);
  }

  #drawingOf(chart) {
    const view = this.viewOf(chart);
    return { ...view, palette: this.palette, events: this.eventsOn(view.axis) };
  }

  #watch(chart) {
    this.chartsByElement.set(chart.element, chart);
    this.pointer.watch(chart);
    this.visibility.observe(chart.element);
  }

  #unwatch(chart) {
    this.visibility.unobserve(chart.element);
    chart.clear(this.plotly);
    chart.element.remove();
  }

  #addChart(key, state) {
    const name = groupOf(key);
    if (!this.groups.has(name)) {
      const group = new MetricGroup(name, state, () => this.on.fold(group));
      this.groups.set(name, group);
      const next = this.groups.get(groupAfter(name, [...this.groups.keys()]));
      this.root.querySelector("[data-part=groups]").insertBefore(group.element, next?.element ?? null);
    }
    const group = this.groups.get(name);
    const tools = [this.#addPanelButton(key), this.#widenButton(key, state)].filter(Boolean);
    const chart = new CurveChart([key], group.titleOf(key), group.panels, tools);
    chart.key = key;
    chart.element.dataset.key = key;
    group.add(chart);
    this.charts.set(key, chart);
    this.#watch(chart);
  }

  #addPanelButton(key) {
    if (!this.addPanel) return null;
    const button = this.root.querySelector("template[data-part=add-chart]").content.firstElementChild.cloneNode(true);
    button.addEventListener("click", () => this.addPanel(key));
    return button;
  }

  #widenButton(key, state) {
    const button = this.root.querySelector("template[data-part=widen]").content.firstElementChild.cloneNode(true);
    const show = (isWide) => {
      button.setAttribute("aria-pressed", String(isWide));
      button.closest(".cv-chart")?.classList.toggle("cv-wide", isWide);
    };
    queueMicrotask(() => show(state.wide.includes(key)));
    button.addEventListener("click", () => {
      const isWide = button.getAttribute("aria-pressed") !== "true";
      show(isWide);
      this.on.widen(this.charts.get(key), isWide);
    });
    return button;
  }

  #removeChart(key, chart) {
    this.#unwatch(chart);
    this.charts.delete(key);
    this.groups.get(groupOf(key)).remove(chart);
  }

  #handleVisibility(entries) {
    for (const { target, isIntersecting } of entries) {
      const chart = this.chartsByElement.get(target);
      if (chart) chart.isInView = isIntersecting;
    }
    const missing = this.panels.filter((chart) => chart.isInView && !chart.isRequested);
    if (missing.length) this.on.load(missing);
    this.scheduleDraw();
  }

  #highlight(id) {
    this.highlighted = id;
    for (const chart of this.panels) if (chart.isInView && !chart.isEmpty) chart.highlight(id);
  }

  #recolor() {
    this.palette.readTheme();
    this.legend.recolor();
    this.updateLines();
  }
}

// The charts of a page, one for each metric, grouped by the prefix before the slash, with their legend and cross-hair.

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
   * `root` contains [data-part=legend|groups]. `on`: {zoom(from, to), zoomOut(), load(charts), widen(chart, isWide),
   * fold(group), hide(ids)}.
   */
  constructor(root, subjects, on) {
    Object.assign(this, { root, on });
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
    this.view = { axis: "step", smoothing: 0, isLog: false, isLogY: false, from: null, to: null };
    this.visibility = new IntersectionObserver((entries) => this.#handleVisibility(entries), { rootMargin: NEAR_PX });
    this.stopTheme = watchTheme(() => this.#recolor());
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(root);
  }

  /** All charts, over which the pointer moves. */
  get panels() {
    return [...this.charts.values()];
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

  /** Sets how curves are shown: axis, smoothing, scales and span. */
  setView(view) {
    Object.assign(this.view, view);
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
      chart.draw(this.plotly, { ...this.view, palette: this.palette }),
    );
    if (!isDone) return;
    if (this.highlighted) this.#highlight(this.highlighted);
    this.tableTimer ??= setTimeout(() => {
      this.tableTimer = null;
      for (const chart of this.panels) if (chart.isInView) chart.writeTable();
    }, TABLES_AFTER_MS);
  }

  zoom(from, to) {
    this.on.zoom(from, to);
  }

  zoomOut() {
    this.on.zoomOut();
  }

  close() {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.tableTimer);
    this.stopTheme();
    this.visibility.disconnect();
    this.resized.disconnect();
    for (const chart of this.panels) chart.clear(this.plotly);
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
    const chart = new CurveChart(key, group.titleOf(key), group.panels, this.#widenButton(key, state));
    group.add(chart);
    this.charts.set(key, chart);
    this.pointer.watch(chart);
    this.visibility.observe(chart.element);
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
    this.visibility.unobserve(chart.element);
    chart.clear(this.plotly);
    chart.element.remove();
    this.charts.delete(key);
    this.groups.get(groupOf(key)).remove(chart);
  }

  #handleVisibility(entries) {
    for (const { target, isIntersecting } of entries) {
      const chart = this.charts.get(target.dataset.key);
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

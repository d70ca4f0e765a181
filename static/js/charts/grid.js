// Small multiples on one time axis. How to use it on a page:
//
//   <script type="module" src="{% static 'js/charts/mount.js' %}"></script> and css/charts.css
//   {% include "clusters/_charts.html" with charts=charts series="/api/v1/nodes/alpha/series/" nodes="alpha" %}
//
// `charts` is made by clusters/charts.py:
//   groups    [{key, label, open, panels: [{label, unit, scope: "gpu"|"host", metrics: [{key, label}], limit, quiet}]}]
//   subjects  {GPU's UUID or node's name: {label, title, memory_bytes, …}} in the order of the legend. Other GPUs are
//             named after their rank in a run's answer ("rank 0") or their index ("GPU 3", "alpha GPU 3" with several
//             nodes).
//   bands     [{from, to, label, url, tone}] spans marked on the axis: runs of a GPU, phases of a run. Times are Unix
//             seconds, a tone is that of a state
//
// data-series   an address that answers as /api/v1/nodes/…/series/, …/gpus/…/series/ or /api/v1/runs/…/series/ does.
//               Its own query is kept (`?all_gpus=1`); metrics=, host=, points=, from= and to= are added. Changing the
//               attribute fetches again.
// data-nodes    the nodes whose live samples are appended ("a,b", or empty for none). Changing it switches the nodes.
// data-added-at when the machine was added (Unix seconds): the axis of a longer span begins at its first sample.
// data-fixed    shows the span of the answer (a run's) instead of the picker's; zooming then needs no fetch.
//
// A group is fetched when it comes into view. Panels without data are hidden. A ChartGrid only draws: mount.js creates
// it, fetches the history (series.js) and appends live samples (sample-stream.js).

import { Legend } from "./legend.js";
import { Palette, watchTheme } from "./palette.js";
import { Panel, MARGIN } from "./panel.js";
import { Pointer } from "./pointer.js";
import { Strip } from "./strip.js";
import * as svgPlot from "./svg-plot.js";
import { writeSummaryTable } from "./table.js";
import { timeTicks } from "./time-axis.js";
import { DrawQueue } from "./draw-queue.js";

const NEAR_PX = "240px";
const TABLES_AFTER_MS = 500; // draw the lines first

export class ChartGrid {
  /** `root` contains [data-part=legend|strip|groups]. `on`: {zoom(from, to), zoomOut(), load(group), isLive()}. */
  constructor(root, { groups, subjects = {}, bands = [] }, on) {
    this.root = root;
    this.on = on;
    this.palette = new Palette();
    this.legend = new Legend(root.querySelector("[data-part=legend]"), subjects, this.palette, {
      onToggle: () => this.collectAll(),
      onHighlight: (id) => this.#highlight(id),
    });
    this.pointer = new Pointer(this, root);
    this.drawQueue = new DrawQueue();
    this.strip = new Strip(root.querySelector("[data-part=strip]"), bands, this.palette);
    this.visibility = new IntersectionObserver((entries) => this.#handleVisibility(entries), { rootMargin: NEAR_PX });
    this.groups = groups.map((group) => this.#makeGroup(group));
    this.bands = bands;
    this.view = { from: 0, to: 1, width: 0 };
    this.stopTheme = watchTheme(() => this.#recolor());
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(root);
  }

  get panels() {
    return this.groups.flatMap((group) => group.panels);
  }

  setBands(bands) {
    this.bands = this.strip.bands = bands;
    this.draw();
  }

  /** Sets the part of the time axis that is shown. */
  setWindow(from, to) {
    Object.assign(this.view, { from, to });
    this.draw();
  }

  /** Shows these series in one group. */
  showSources(group, sources) {
    group.sources = sources;
    group.element.dataset.loaded = "";
    this.legend.addSources(sources);
    this.#collect(group);
    this.draw();
  }

  collectAll() {
    for (const group of this.groups) this.#collect(group);
    this.draw();
  }

  /** Collects lines again after new samples, which may be the first of a metric or a GPU. */
  collectNewSamples() {
    for (const group of this.groups) {
      this.legend.addSources(group.sources);
      for (const panel of group.panels) panel.collect(group.sources, this.legend, this.palette);
    }
  }

  /** Draws the panels in view now, and the others when they come into view. */
  async draw() {
    for (const panel of this.panels) panel.needsDraw = true;
    await this.drawPending();
  }

  async drawPending() {
    const filled = this.panels.filter((panel) => !panel.isEmpty);
    if (!filled.length) {
      this.strip.draw(this.view);
      return;
    }
    this.#updateView(filled);
    this.strip.draw(this.view);
    const pending = filled.filter((panel) => panel.needsDraw && panel.isInView);
    const isDone = await this.drawQueue.run(pending, (panel) => panel.isEmpty || panel.draw(svgPlot, this.view));
    if (isDone && this.highlighted) this.#highlight(this.highlighted);
  }

  /** Shows the newest values beside the titles, which change every second, unlike the lines of a long span. */
  showReadouts() {
    for (const panel of this.panels) if (panel.isInView) panel.showReadout();
  }

  writeTables() {
    for (const panel of this.panels) if (panel.isInView) writeSummaryTable(panel);
  }

  zoom(from, to) {
    this.setWindow(from, to);
    this.on.zoom(from, to);
  }

  zoomOut() {
    this.on.zoomOut();
  }

  close() {
    clearTimeout(this.tableTimer);
    this.stopTheme();
    this.visibility.disconnect();
    this.resized.disconnect();
    for (const panel of this.panels) panel.clear(svgPlot);
  }

  #makeGroup(spec) {
    const element = document.createElement("details");
    element.className = "ch-group";
    element.open = spec.open !== false;
    element.innerHTML =
      '<summary></summary><div class="ch-note th-muted" role="status"></div><div class="ch-panels"></div>';
    element.querySelector("summary").textContent = spec.label;
    this.root.querySelector("[data-part=groups]").append(element);
    const group = { spec, element, sources: [], isNeeded: false, panels: [] };
    group.panels = spec.panels.map((panel) => new Panel(panel, element.querySelector(".ch-panels")));
    for (const panel of group.panels) {
      this.pointer.watch(panel);
      this.visibility.observe(panel.element);
    }
    this.visibility.observe(element);
    return group;
  }

  #handleVisibility(entries) {
    let hasPending = false;
    for (const { target, isIntersecting } of entries) {
      const group = this.groups.find(({ element }) => element === target);
      if (group && isIntersecting && group.element.open && !group.isNeeded) {
        group.isNeeded = true;
        this.on.load(group);
      }
      const panel = group ? null : this.panels.find(({ element }) => element === target);
      if (!panel) continue;
      panel.isInView = isIntersecting;
      hasPending ||= isIntersecting && panel.needsDraw;
    }
    if (hasPending) this.drawPending();
  }

  #collect(group) {
    for (const panel of group.panels) {
      panel.collect(group.sources, this.legend, this.palette);
      panel.needsDraw = true;
    }
    this.tableTimer ??= setTimeout(() => {
      this.tableTimer = null;
      for (const panel of this.panels) writeSummaryTable(panel);
    }, TABLES_AFTER_MS);
  }

  #updateView(filled) {
    const width = filled.find((panel) => panel.plot.clientWidth)?.plot.clientWidth;
    if (width) this.view.width = width;
    const { from, to } = this.view;
    Object.assign(this.view, {
      palette: this.palette,
      legend: this.legend,
      isLive: this.on.isLive(),
      bands: this.bands.filter((band) => band.to > from && band.from < to),
      ticks: timeTicks(from, to, this.view.width - MARGIN.l - MARGIN.r),
    });
  }

  #highlight(id) {
    this.highlighted = id;
    for (const panel of this.panels) if (panel.isInView && !panel.isEmpty) panel.highlight(id);
  }

  #recolor() {
    this.palette.readTheme();
    this.legend.recolor();
    this.collectAll();
  }
}

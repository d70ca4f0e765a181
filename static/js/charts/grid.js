// Small multiples on one time axis. How to use it on a page:
//
//   <script type="module" src="{% static 'js/charts/mount.js' %}"></script>   and   css/charts.css
//   {% include "clusters/_charts.html" with charts=charts series="/api/v1/nodes/alpha/series/" nodes="alpha" %}   with its picker of a span
//
// `charts` is made by clusters/charts.py:
//   groups    [{key, label, open, panels: [{label, unit, scope: "gpu"|"host", metrics: [{key, label}], limit, quiet}]}]
//   subjects  {GPU's UUID or node's name: {label, title, memory_bytes, …}} in the order of the legend; what is not named here is
//             named "GPU 3" ("alpha GPU 3" with several nodes); ranks of a run's answer ("rank 0") win over that
//   bands     [{from, to, label, url, tone}] spans marked on the axis: runs of a GPU, phases of a run (Unix seconds; tone: a state's)
//
// data-series   any address that answers as /api/v1/nodes/…/series/, …/gpus/…/series/ or /api/v1/runs/…/series/ does; what its own
//               query says is kept (`?all_gpus=1`), and changing the attribute fetches anew. metrics=, host=, points=, from=, to= are added.
// data-nodes    names of nodes whose live samples are appended ("a,b"; empty: none). Changing it follows others.
// data-fixed    the answer's own span is shown (a run's), not the picker's; zooming then needs no fetch.
//
// A group is fetched when it comes into view. Panels without data are not shown. A Grid is only this module's drawing part:
// mount.js makes it, fetches (series.js) and follows (live.js).

import { Legend } from "./legend.js";
import { Palette, watchTheme } from "./palette.js";
import { Panel, MARGIN } from "./panel.js";
import { plotly } from "./plotly.js";
import { Pointer } from "./pointer.js";
import { Strip } from "./strip.js";
import { writeTable } from "./table.js";
import { ticks } from "./timeaxis.js";
import { Turns } from "./turns.js";

const NEAR_PX = "240px";
const TABLES_AFTER_MS = 500; // lines first

export class Grid {
  /** `root` holds [data-part=legend|strip|groups]. `on`: {zoom(from, to), zoomOut(), needed(group)}. */
  constructor(root, { groups, subjects = {}, bands = [] }, on) {
    this.root = root;
    this.on = on;
    this.palette = new Palette();
    this.legend = new Legend(root.querySelector("[data-part=legend]"), subjects, this.palette, {
      onToggle: () => this.recollect(), onPoint: (id) => this.#highlight(id),
    });
    this.pointer = new Pointer(this, root);
    this.turns = new Turns();
    this.strip = new Strip(root.querySelector("[data-part=strip]"), bands, this.palette);
    this.seen = new IntersectionObserver((entries) => this.#sighted(entries), { rootMargin: NEAR_PX });
    this.groups = groups.map((group) => this.#group(group));
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

  /** The part of the time axis that is shown. */
  setWindow(from, to) {
    Object.assign(this.view, { from, to });
    this.draw();
  }

  /** What is known now for one group; keeps what other groups show. */
  show(group, sources) {
    group.sources = sources;
    group.element.dataset.loaded = "";
    this.legend.learn(sources);
    this.#collect(group);
    this.draw();
  }

  recollect() {
    for (const group of this.groups) this.#collect(group);
    this.draw();
  }

  /** New samples have come, perhaps of a metric or a GPU that there was nothing of before. */
  renew() {
    for (const group of this.groups) {
      this.legend.learn(group.sources);
      for (const panel of group.panels) panel.collect(group.sources, this.legend, this.palette);
    }
  }

  /** Draws the panels in view; the others when they come into view. */
  async draw() {
    for (const panel of this.panels) panel.isDue = true;
    await this.drawDue();
  }

  async drawDue() {
    const shown = this.panels.filter((panel) => !panel.isEmpty);
    if (!shown.length) {
      this.strip.draw(this.view);
      return;
    }
    this.plotly ??= await plotly();
    this.#measure(shown);
    this.strip.draw(this.view);
    const due = shown.filter((panel) => panel.isDue && panel.isInView);
    const isDone = await this.turns.take(due, (panel) => panel.isEmpty || panel.draw(this.plotly, this.view));
    if (isDone && this.pointed) this.#highlight(this.pointed);
  }

  /** The newest values beside the titles: what a second changes of a chart of hours. */
  tell() {
    for (const panel of this.panels) if (panel.isInView) panel.tell();
  }

  writeTables() {
    for (const panel of this.panels) if (panel.isInView) writeTable(panel);
  }

  zoom(from, to) {
    this.setWindow(from, to);
    this.on.zoom(from, to);
  }

  zoomOut() {
    this.on.zoomOut();
  }

  close() {
    clearTimeout(this.idle);
    this.stopTheme();
    this.seen.disconnect();
    this.resized.disconnect();
    for (const panel of this.panels) panel.clear(this.plotly);
  }

  #group(spec) {
    const element = document.createElement("details");
    element.className = "ch-group";
    element.open = spec.open !== false;
    element.innerHTML = '<summary></summary><div class="ch-note th-muted" role="status"></div><div class="ch-panels"></div>';
    element.querySelector("summary").textContent = spec.label;
    this.root.querySelector("[data-part=groups]").append(element);
    const group = { spec, element, sources: [], isNeeded: false, panels: [] };
    group.panels = spec.panels.map((panel) => new Panel(panel, element.querySelector(".ch-panels")));
    for (const panel of group.panels) {
      this.pointer.watch(panel);
      this.seen.observe(panel.element);
    }
    this.seen.observe(element);
    return group;
  }

  #sighted(entries) {
    let isDue = false;
    for (const { target, isIntersecting } of entries) {
      const group = this.groups.find(({ element }) => element === target);
      if (group && isIntersecting && group.element.open && !group.isNeeded) {
        group.isNeeded = true;
        this.on.needed(group);
      }
      const panel = group ? null : this.panels.find(({ element }) => element === target);
      if (!panel) continue;
      panel.isInView = isIntersecting;
      isDue ||= isIntersecting && panel.isDue;
    }
    if (isDue) this.drawDue();
  }

  #collect(group) {
    for (const panel of group.panels) {
      panel.collect(group.sources, this.legend, this.palette);
      panel.isDue = true;
    }
    this.idle ??= setTimeout(() => {
      this.idle = null;
      for (const panel of this.panels) writeTable(panel);
    }, TABLES_AFTER_MS);
  }

  #measure(shown) {
    const width = shown.find((panel) => panel.plot.clientWidth)?.plot.clientWidth;
    if (width) this.view.width = width;
    const { from, to } = this.view;
    Object.assign(this.view, {
      palette: this.palette, legend: this.legend, bands: this.bands.filter((band) => band.to > from && band.from < to),
      ticks: ticks(from, to, this.view.width - MARGIN.l - MARGIN.r),
    });
  }

  #highlight(id) {
    this.pointed = id;
    for (const panel of this.panels) if (panel.isInView && !panel.isEmpty) panel.highlight(id);
  }

  #recolor() {
    this.palette.read();
    this.legend.recolor();
    this.recollect();
  }
}

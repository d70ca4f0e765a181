// The charts of a page, one for each metric, in groups by what stands before the slash; their legend and the cross-hair.

import { Legend } from "../charts/legend.js";
import { Palette, watchTheme } from "../charts/palette.js";
import { plotly } from "../charts/plotly.js";
import { Pointer } from "../charts/pointer.js";
import { Turns } from "../charts/turns.js";
import { Chart } from "./chart.js";
import { Group, groupOf, inOrder } from "./group.js";

const NEAR_PX = "240px";
const TABLES_AFTER_MS = 500; // lines first

export class Board {
  /** `root` holds [data-part=legend|groups]. `on`: {zoom(from, to), zoomOut(), needed(charts), widened(chart), folded(group), hidden(ids)}. */
  constructor(root, subjects, on) {
    Object.assign(this, { root, on });
    this.palette = new Palette();
    this.legend = new Legend(root.querySelector("[data-part=legend]"), {}, this.palette, {
      onToggle: () => {
        on.hidden(this.legend.hidden);
        this.choose();
      },
      onPoint: (id) => this.#highlight(id),
    });
    this.legend.list(subjects);
    this.pointer = new Pointer(this, root);
    this.turns = new Turns();
    this.groups = new Map();
    this.charts = new Map();
    this.view = { axis: "step", smoothing: 0, isLog: false, isLogY: false, from: null, to: null };
    this.seen = new IntersectionObserver((entries) => this.#sighted(entries), { rootMargin: NEAR_PX });
    this.stopTheme = watchTheme(() => this.#recolor());
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(root);
  }

  /** What the pointer moves over. */
  get panels() {
    return [...this.charts.values()];
  }

  /** A chart for each of these metrics, and for no other. */
  list(keys, state) {
    const wanted = new Set(keys);
    for (const [key, chart] of this.charts) if (!wanted.has(key)) this.#drop(key, chart);
    for (const key of keys) if (!this.charts.has(key)) this.#add(key, state);
    for (const [name, group] of this.groups) {
      if (group.isEmpty) {
        group.element.remove();
        this.groups.delete(name);
      } else group.count();
    }
  }

  /** How things are shown: axis, smoothing, scales, span. */
  setView(view) {
    Object.assign(this.view, view);
    this.draw();
  }

  show(chart, lines) {
    chart.found = lines;
    chart.isLoaded = true;
    chart.choose(this.legend, this.palette);
    chart.isDue = true;
    this.drawSoon();
  }

  choose() {
    for (const chart of this.panels) chart.choose(this.legend, this.palette);
    this.draw();
  }

  draw() {
    for (const chart of this.panels) chart.isDue = true;
    this.drawSoon();
  }

  drawSoon() {
    this.soon ??= requestAnimationFrame(() => {
      this.soon = null;
      this.drawDue();
    });
  }

  async drawDue() {
    const due = this.panels.filter((chart) => chart.isDue && chart.isInView && chart.isLoaded);
    if (!due.length) return;
    this.plotly ??= await plotly();
    const isDone = await this.turns.take(due, (chart) => chart.draw(this.plotly, { ...this.view, palette: this.palette }));
    if (!isDone) return;
    if (this.pointed) this.#highlight(this.pointed);
    this.idle ??= setTimeout(() => {
      this.idle = null;
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
    cancelAnimationFrame(this.soon);
    clearTimeout(this.idle);
    this.stopTheme();
    this.seen.disconnect();
    this.resized.disconnect();
    for (const chart of this.panels) chart.clear(this.plotly);
  }

  #add(key, state) {
    const name = groupOf(key);
    if (!this.groups.has(name)) {
      const group = new Group(name, state, () => this.on.folded(group));
      this.groups.set(name, group);
      const after = [...this.groups.values()].filter((other) => other.element.isConnected && inOrder(name, other.name) < 0)[0];
      this.root.querySelector("[data-part=groups]").insertBefore(group.element, after?.element ?? null);
    }
    const group = this.groups.get(name);
    const chart = new Chart(key, group.titleOf(key), group.panels, this.#widen(key, state));
    group.put(chart);
    this.charts.set(key, chart);
    this.pointer.watch(chart);
    this.seen.observe(chart.element);
  }

  #widen(key, state) {
    const button = this.root.querySelector("template[data-part=widen]").content.firstElementChild.cloneNode(true);
    const show = (isWide) => {
      button.setAttribute("aria-pressed", String(isWide));
      button.closest(".cv-chart")?.classList.toggle("cv-wide", isWide);
    };
    queueMicrotask(() => show(state.wide.includes(key)));
    button.addEventListener("click", () => {
      const isWide = button.getAttribute("aria-pressed") !== "true";
      show(isWide);
      this.on.widened(this.charts.get(key), isWide);
    });
    return button;
  }

  #drop(key, chart) {
    this.seen.unobserve(chart.element);
    chart.clear(this.plotly);
    chart.element.remove();
    this.charts.delete(key);
    this.groups.get(groupOf(key)).forget(chart);
  }

  #sighted(entries) {
    for (const { target, isIntersecting } of entries) {
      const chart = this.charts.get(target.dataset.key);
      if (chart) chart.isInView = isIntersecting;
    }
    const needed = this.panels.filter((chart) => chart.isInView && !chart.isAsked);
    if (needed.length) this.on.needed(needed);
    this.drawSoon();
  }

  #highlight(id) {
    this.pointed = id;
    for (const chart of this.panels) if (chart.isInView && !chart.isEmpty) chart.highlight(id);
  }

  #recolor() {
    this.palette.read();
    this.legend.recolor();
    this.choose();
  }
}

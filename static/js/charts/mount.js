// Puts the charts of a page together: what is shown (grid.js), for when (range.js), from where (series.js) and live (live.js).

import { mount } from "../app.js";
import { Grid } from "./grid.js";
import { follow } from "./live.js";
import { MARGIN } from "./panel.js";
import { plotly } from "./plotly.js";
import { now, onRange, setClock, setRange, timeRange } from "./range.js";
import { load, seriesOf } from "./series.js";

const TICK_MS = 1000;
const CALM_TICK_MS = 10_000; // for those who asked for less motion
const TABLES_EVERY_MS = 10_000;
const LONGEST_SAMPLED_S = 21_600; // beyond six hours a second is less than a pixel
const AGAIN_MS = 60_000;
const REMEMBERED_S = 180; // samples that may be newer than the history that is on its way
const OPEN_S = 86_400;
const [LEAST_POINTS, MOST_POINTS] = [120, 800];

class Charts {
  constructor(element) {
    this.element = element;
    if (element.dataset.now) setClock(Number(element.dataset.now));
    plotly(); // is on its way while the numbers are
    const config = JSON.parse(document.getElementById(element.dataset.config).textContent);
    this.grid = new Grid(element, config, {
      zoom: (from, to) => this.isFixed || setRange({ from, to }),
      zoomOut: () => this.zoomOut(),
      needed: (group) => this.fetch(group),
    });
    this.wanted = wantedBy(config.groups);
    this.isFixed = "fixed" in element.dataset;
    this.asked = new Map();
    this.samples = [];
    this.undo = [
      this.isFixed ? () => {} : onRange(() => this.restart()),
      this.#watchAttributes(),
      this.#watchBands(),
    ];
    element.querySelector("[data-part=table]")?.addEventListener("click", (event) => this.#table(event.currentTarget));
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    this.timer = setInterval(() => this.#tick(), TICK_MS);
    this.restart();
  }

  /** Another span or another address: everything that is in view is fetched anew. */
  restart() {
    this.range = this.isFixed ? this.whole ?? null : timeRange();
    if (this.range) this.grid.setWindow(this.range.from, this.range.to);
    this.#follow();
    this.refetch();
    this.#csv();
  }

  refetch() {
    this.fetchedAt = Date.now();
    for (const group of this.grid.groups) if (group.isNeeded) this.fetch(group);
  }

  async fetch(group) {
    this.asked.get(group)?.abort();
    const asked = new AbortController();
    this.asked.set(group, asked);
    const note = group.element.querySelector(".ch-note");
    if (!group.sources.length) note.textContent = "Loading …";
    group.element.setAttribute("aria-busy", "true");
    try {
      const answer = await load(this.element.dataset.series, this.#query(group), asked.signal);
      if (this.asked.get(group) !== asked) return;
      if (this.isFixed) this.#span(answer);
      this.#label(answer);
      const sources = seriesOf(answer);
      for (const message of this.samples) this.#append(sources, message);
      this.grid.show(group, sources);
      this.#note(group);
    } catch (error) {
      if (error.name !== "AbortError") note.textContent = error.message;
    } finally {
      if (this.asked.get(group) === asked) group.element.removeAttribute("aria-busy");
    }
  }

  zoomOut() {
    if (this.isFixed) this.grid.setWindow(this.whole.from, this.whole.to);
    else if (!timeRange().isLive) {
      const { from, to, span } = timeRange();
      setRange({ from: from - span / 2, to: Math.min(now(), to + span / 2) });
    }
  }

  close() {
    clearInterval(this.timer);
    for (const undo of this.undo) undo();
    for (const asked of this.asked.values()) asked.abort();
    this.stop?.();
    this.grid.close();
  }

  get isLive() {
    return this.isFixed ? Boolean(this.element.dataset.nodes) : this.range.isLive;
  }

  #query(group) {
    const { gpu, host } = wantedBy([group.spec]);
    const { from, to } = this.isFixed ? {} : timeRange();
    return {
      from: from && Math.floor(from), to: to && Math.ceil(to), points: this.#points(), metrics: [...gpu].join(","),
      host: [...host].join(","), // empty: none of them
    };
  }

  /** As many points as a panel has pixels. */
  #points() {
    const width = (this.grid.view.width || this.element.querySelector(".ch-panels")?.clientWidth / 3 || 400) - MARGIN.l - MARGIN.r;
    return Math.round(Math.min(MOST_POINTS, Math.max(LEAST_POINTS, width)));
  }

  #bin() {
    return Math.max(1, Math.ceil((this.grid.view.to - this.grid.view.from) / this.#points()));
  }

  #follow() {
    const nodes = (this.element.dataset.nodes ?? "").split(",").filter(Boolean);
    const isSampled = this.isLive && nodes.length > 0 && (this.isFixed || this.range.span <= LONGEST_SAMPLED_S);
    const path = isSampled ? nodes.join(",") : "";
    if (path === this.followed) return;
    this.stop?.();
    this.followed = path;
    this.stop = isSampled ? follow(nodes, (message) => this.#heard(message), () => this.refetch()) : null;
  }

  #heard(message) {
    this.samples = [...this.samples.filter(({ start }) => start > message.start - REMEMBERED_S), message];
    for (const group of this.grid.groups) this.#append(group.sources, message);
    this.isFresh = true;
  }

  #append(sources, message) {
    sources.find(({ node }) => node === message.node)?.append(message, this.#bin(), this.wanted);
  }

  #tick() {
    if (document.hidden || !this.range || !this.isLive || document.querySelector(".ch-plot:active")) return;
    const beat = this.calm.matches ? CALM_TICK_MS : TICK_MS;
    const step = Math.max(beat, (this.range.span * 1000) / 2000);
    if (this.isFresh) this.grid.tell();
    if (Date.now() - (this.drawnAt ?? 0) < step - TICK_MS / 2) return;
    this.drawnAt = Date.now();
    if (Date.now() - this.fetchedAt > Math.max(AGAIN_MS, (this.range.span * 1000) / this.#points())) this.refetch();
    this.#move();
    if (this.drawnAt - (this.toldAt ?? 0) > TABLES_EVERY_MS) {
      this.toldAt = this.drawnAt;
      this.grid.writeTables();
    }
  }

  #move() {
    if (this.isFixed) {
      if (!this.#renew() || this.grid.view.to !== this.whole.to) return;
      this.whole.to = now();
      this.grid.setWindow(this.whole.from, this.whole.to);
      return;
    }
    const { from, to } = timeRange();
    for (const group of this.grid.groups) for (const source of group.sources) source.forget(from);
    this.#renew();
    this.grid.setWindow(from, to);
  }

  /** Whether there is anything new. What was not known before gets its panel now. */
  #renew() {
    if (!this.isFresh) return false;
    this.isFresh = false;
    this.grid.renew();
    for (const group of this.grid.groups) if (group.sources.length) this.#note(group);
    return true;
  }

  #note(group) {
    const isEmpty = group.panels.every((panel) => panel.isEmpty);
    group.element.querySelector(".ch-note").textContent = isEmpty ? "Nothing was measured in this time." : "";
  }

  /** A run's own span; while one has zoomed in, that stays. */
  #span(answer) {
    const isWhole = !this.whole || this.grid.view.to === this.whole.to;
    this.whole = { from: answer.from, to: Math.max(answer.to, answer.from + 10), span: answer.to - answer.from };
    this.range = this.whole;
    if (isWhole) this.grid.setWindow(this.whole.from, this.whole.to);
    if (answer.phases?.length) this.grid.setBands(phases(answer.phases, this.isLive));
  }

  #label(answer) {
    const ranks = new Map();
    for (const { rank, gpus } of answer.ranks ?? []) for (const gpu of gpus) ranks.set(gpu, [...(ranks.get(gpu) ?? []), rank]);
    for (const [gpu, found] of ranks) {
      const label = found.length > 1 ? `ranks ${found.join(", ")}` : `rank ${found[0]}`;
      if (!this.grid.legend.named.has(gpu)) this.grid.legend.named.set(gpu, { label });
    }
  }

  #csv() {
    const link = this.element.querySelector("[data-part=csv]");
    if (!link) return;
    const url = new URL(this.element.dataset.series, location.href);
    const { from, to } = this.isFixed ? {} : timeRange();
    const query = { from: from && Math.floor(from), to: to && Math.ceil(to), points: MOST_POINTS, metrics: [...this.wanted.gpu].join(","), host: [...this.wanted.host].join(","), as: "csv" };
    for (const [name, value] of Object.entries(query)) if (value) url.searchParams.set(name, value);
    link.href = url.pathname + url.search;
  }

  #table(button) {
    const isOn = this.element.classList.toggle("ch-tabled");
    button.setAttribute("aria-pressed", String(isOn));
    this.grid.writeTables();
  }

  #watchAttributes() {
    const observer = new MutationObserver(() => {
      this.followed = null;
      this.whole = null;
      this.restart();
    });
    observer.observe(this.element, { attributes: true, attributeFilter: ["data-series", "data-nodes"] });
    return () => observer.disconnect();
  }

  /** Spans that the page fetches anew by itself come as another JSON element: data-bands names it. */
  #watchBands() {
    const id = this.element.dataset.bands;
    if (!id) return () => {};
    const read = () => {
      const found = document.getElementById(id);
      if (found) this.grid.setBands(JSON.parse(found.textContent));
    };
    read();
    document.addEventListener("htmx:afterSwap", read);
    return () => document.removeEventListener("htmx:afterSwap", read);
  }
}

function wantedBy(groups) {
  const wanted = { gpu: new Set(), host: new Set() };
  for (const { panels } of groups) {
    for (const { scope, metrics, limit } of panels) {
      for (const { key } of metrics) wanted[scope].add(key);
      if (limit && limit !== "memory_bytes") wanted[scope].add(limit);
    }
  }
  return wanted;
}

const TONES = { Preparing: "preparing", Running: "running", Finalizing: "finalizing", "Post-processing": "finalizing" };

/** As bands; the last one of a run that goes on has no end yet. */
function phases(told, isOpen) {
  return told.map(({ name, from, to }, place) => {
    const end = to === null || (isOpen && place === told.length - 1) ? now() + OPEN_S : to;
    return { from, to: end, label: name, tone: TONES[name] ?? "waiting" };
  });
}

mount("charts", (element) => {
  const charts = new Charts(element);
  return () => charts.close();
});

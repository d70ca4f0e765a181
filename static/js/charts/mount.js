// Assembles the charts of a page: the drawing (grid.js), the span (range.js), the history (series.js) and the live
// samples (sample-stream.js).

import { mount } from "../app.js";
import { axisStart, firstTimeOfNode, showBegin } from "./first-sample.js";
import { ChartGrid } from "./grid.js";
import { streamSamples } from "./sample-stream.js";
import { MARGIN } from "./panel.js";
import { phaseBands } from "./phase-bands.js";
import { hubNow, onRangeChange, setHubClock, setRange, timeRange } from "./range.js";
import { fetchJson, seriesFromAnswer } from "./series.js";

const TICK_MS = 1000;
const CALM_TICK_MS = 10_000; // for people who prefer reduced motion
const TABLES_EVERY_MS = 10_000;
const MAX_SAMPLED_SPAN_S = 21_600; // beyond six hours a second is less than a pixel
const REFETCH_MS = 60_000;
const BUFFERED_S = 180; // samples that may be newer than a history that is being fetched
const [MIN_POINTS, MAX_POINTS] = [120, 800];

class Charts {
  constructor(element) {
    this.element = element;
    if (element.dataset.now) setHubClock(Number(element.dataset.now));
    const config = JSON.parse(document.getElementById(element.dataset.config).textContent);
    this.grid = new ChartGrid(element, config, {
      zoom: (from, to) => this.isFixed || setRange({ from, to }),
      zoomOut: () => this.zoomOut(),
      load: (group) => this.fetch(group),
      isLive: () => this.isLive,
    });
    this.metricsByScope = metricsOf(config.groups);
    this.isFixed = "fixed" in element.dataset;
    this.requests = new Map();
    this.samples = [];
    this.cleanups = [
      this.isFixed ? () => {} : onRangeChange(() => this.restart()),
      this.#watchAttributes(),
      this.#watchBands(),
    ];
    element
      .querySelector("[data-part=table]")
      ?.addEventListener("click", (event) => this.#toggleTable(event.currentTarget));
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    this.timer = setInterval(() => this.#tick(), TICK_MS);
    this.restart();
  }

  /** Fetches everything in view again, because the span or the address has changed. */
  restart() {
    for (const group of this.grid.groups) group.first = null;
    this.range = this.isFixed ? (this.runSpan ?? null) : timeRange();
    if (this.range) this.grid.setWindow(this.range.from, this.range.to);
    this.#updateStream();
    this.refetch();
    this.#updateCsvLink();
  }

  refetch() {
    this.fetchedAt = Date.now();
    for (const group of this.grid.groups) if (group.isNeeded) this.fetch(group);
  }

  async fetch(group) {
    this.requests.get(group)?.abort();
    const request = new AbortController();
    this.requests.set(group, request);
    const note = group.element.querySelector(".ch-note");
    if (!group.sources.length) note.textContent = "Loading …";
    group.element.setAttribute("aria-busy", "true");
    try {
      const answer = await fetchJson(this.element.dataset.series, this.#query(group), request.signal);
      if (this.requests.get(group) !== request) return;
      if (this.isFixed) this.#setRunSpan(answer);
      else if (this.#beginAtFirstSample(group, answer)) return this.fetch(group);
      this.#nameRanks(answer);
      const sources = seriesFromAnswer(answer);
      for (const message of this.samples) this.#append(sources, message);
      this.grid.showSources(group, sources);
      this.#updateNote(group);
    } catch (error) {
      if (error.name !== "AbortError") note.textContent = error.message;
    } finally {
      if (this.requests.get(group) === request) group.element.removeAttribute("aria-busy");
    }
  }

  zoomOut() {
    if (this.isFixed) this.grid.setWindow(this.runSpan.from, this.runSpan.to);
    else if (!timeRange().isLive) {
      const { from, to, span } = timeRange();
      setRange({ from: from - span / 2, to: Math.min(hubNow(), to + span / 2) });
    }
  }

  close() {
    clearInterval(this.timer);
    for (const cleanup of this.cleanups) cleanup();
    for (const request of this.requests.values()) request.abort();
    this.stopStream?.();
    this.grid.close();
  }

  get isLive() {
    return this.isFixed ? Boolean(this.element.dataset.nodes) : this.range.isLive;
  }

  #query(group) {
    const { gpu, host } = metricsOf([group.spec]);
    const { from, to } = this.isFixed ? {} : this.#shownSpan([group]);
    return {
      from: from && Math.floor(from),
      to: to && Math.ceil(to),
      points: this.#points(),
      metrics: [...gpu].join(","),
      host: [...host].join(","), // empty: no metric of the host
    };
  }

  /** Returns about one point per pixel of a panel. */
  #points() {
    const width =
      (this.grid.view.width || this.element.querySelector(".ch-panels")?.clientWidth / 3 || 400) - MARGIN.l - MARGIN.r;
    return Math.round(Math.min(MAX_POINTS, Math.max(MIN_POINTS, width)));
  }

  #bin() {
    return Math.max(1, Math.ceil((this.grid.view.to - this.grid.view.from) / this.#points()));
  }

  #updateStream() {
    const nodes = (this.element.dataset.nodes ?? "").split(",").filter(Boolean);
    const isSampled = this.isLive && nodes.length > 0 && (this.isFixed || this.range.span <= MAX_SAMPLED_SPAN_S);
    const path = isSampled ? nodes.join(",") : "";
    if (path === this.streamedNodes) return;
    this.stopStream?.();
    this.streamedNodes = path;
    this.stopStream = isSampled
      ? streamSamples(
          nodes,
          (message) => this.#handleSamples(message),
          () => this.refetch(),
        )
      : null;
  }

  #handleSamples(message) {
    this.samples = [...this.samples.filter(({ start }) => start > message.start - BUFFERED_S), message];
    for (const group of this.grid.groups) this.#append(group.sources, message);
    this.hasNewSamples = true;
  }

  #append(sources, message) {
    sources.find(({ node }) => node === message.node)?.append(message, this.#bin(), this.metricsByScope);
  }

  #tick() {
    if (document.hidden || !this.range || !this.isLive || document.querySelector(".ch-plot:active")) return;
    const beat = this.calm.matches ? CALM_TICK_MS : TICK_MS;
    const step = Math.max(beat, (this.range.span * 1000) / 2000);
    if (this.hasNewSamples) this.grid.showReadouts();
    if (Date.now() - (this.drawnAt ?? 0) < step - TICK_MS / 2) return;
    this.drawnAt = Date.now();
    if (Date.now() - this.fetchedAt > Math.max(REFETCH_MS, (this.range.span * 1000) / this.#points())) this.refetch();
    this.#move();
    if (this.drawnAt - (this.tablesWrittenAt ?? 0) > TABLES_EVERY_MS) {
      this.tablesWrittenAt = this.drawnAt;
      this.grid.writeTables();
    }
  }

  #move() {
    if (this.isFixed) {
      if (!this.#collectNewSamples() || this.grid.view.to !== this.runSpan.to) return;
      this.runSpan.to = hubNow();
      this.grid.setWindow(this.runSpan.from, this.runSpan.to);
      return;
    }
    const { from, to } = this.#shownSpan();
    for (const group of this.grid.groups) for (const source of group.sources) source.dropBefore(from);
    this.#collectNewSamples();
    this.grid.setWindow(from, to);
  }

  /** Adds panels and lines that the new samples need. Returns whether there were new samples. */
  #collectNewSamples() {
    if (!this.hasNewSamples) return false;
    this.hasNewSamples = false;
    this.grid.collectNewSamples();
    for (const group of this.grid.groups) if (group.sources.length) this.#updateNote(group);
    return true;
  }

  #updateNote(group) {
    const isEmpty = group.panels.every((panel) => panel.isEmpty);
    group.element.querySelector(".ch-note").textContent = isEmpty ? "Nothing was measured in this period." : "";
  }

  /** Returns the span of the picker, from the first sample on if the machine was added later. */
  #shownSpan(groups = this.grid.groups) {
    const range = timeRange();
    const times = groups.map(({ first }) => first).filter((first) => first !== null);
    const first = times.length ? Math.min(...times) : null;
    return { ...range, from: axisStart(range.from, Number(this.element.dataset.addedAt), first) };
  }

  /** Begins the axis at the first sample. Returns whether to fetch the group again: a shorter span has finer points. */
  #beginAtFirstSample(group, answer) {
    const isFirstKnown = group.first !== null;
    group.first = firstTimeOfNode(answer) ?? group.first;
    const { from, to, span } = this.#shownSpan();
    this.grid.setWindow(from, to);
    showBegin(this.element.querySelector("[data-part=begin]"), from > to - span, from, span);
    const own = this.#shownSpan([group]);
    return !isFirstKnown && own.from > own.to - own.span;
  }

  /** Takes over the span of the run, and shows it unless the reader has zoomed in. */
  #setRunSpan(answer) {
    const showsRunSpan = !this.runSpan || this.grid.view.to === this.runSpan.to;
    this.runSpan = { from: answer.from, to: Math.max(answer.to, answer.from + 10), span: answer.to - answer.from };
    this.range = this.runSpan;
    if (showsRunSpan) this.grid.setWindow(this.runSpan.from, this.runSpan.to);
    if (answer.phases?.length) this.grid.setBands(phaseBands(answer.phases, this.isLive));
  }

  #nameRanks(answer) {
    const ranks = new Map();
    for (const { rank, gpus } of answer.ranks ?? [])
      for (const gpu of gpus) ranks.set(gpu, [...(ranks.get(gpu) ?? []), rank]);
    for (const [gpu, rankNumbers] of ranks) {
      const label = rankNumbers.length > 1 ? `ranks ${rankNumbers.join(", ")}` : `rank ${rankNumbers[0]}`;
      if (!this.grid.legend.names.has(gpu)) this.grid.legend.names.set(gpu, { label });
    }
  }

  #updateCsvLink() {
    const link = this.element.querySelector("[data-part=csv]");
    if (!link) return;
    const url = new URL(this.element.dataset.series, location.href);
    const { from, to } = this.isFixed ? {} : timeRange();
    const query = {
      from: from && Math.floor(from),
      to: to && Math.ceil(to),
      points: MAX_POINTS,
      metrics: [...this.metricsByScope.gpu].join(","),
      host: [...this.metricsByScope.host].join(","),
      as: "csv",
    };
    for (const [name, value] of Object.entries(query)) if (value) url.searchParams.set(name, value);
    link.href = url.pathname + url.search;
  }

  #toggleTable(button) {
    const isOn = this.element.classList.toggle("ch-tabled");
    button.setAttribute("aria-pressed", String(isOn));
    this.grid.writeTables();
  }

  #watchAttributes() {
    const observer = new MutationObserver(() => {
      this.streamedNodes = null;
      this.runSpan = null;
      this.restart();
    });
    observer.observe(this.element, { attributes: true, attributeFilter: ["data-series", "data-nodes"] });
    return () => observer.disconnect();
  }

  /** Reads the bands from the JSON element that data-bands names, again whenever htmx has replaced it. */
  #watchBands() {
    const id = this.element.dataset.bands;
    if (!id) return () => {};
    const read = () => {
      const source = document.getElementById(id);
      if (source) this.grid.setBands(JSON.parse(source.textContent));
    };
    read();
    document.addEventListener("htmx:afterSwap", read);
    return () => document.removeEventListener("htmx:afterSwap", read);
  }
}

/** Returns {gpu, host}, the sets of metrics that the panels of these groups need. */
function metricsOf(groups) {
  const keys = { gpu: new Set(), host: new Set() };
  for (const { panels } of groups) {
    for (const { scope, metrics, limit } of panels) {
      for (const { key } of metrics) keys[scope].add(key);
      if (limit && limit !== "memory_bytes") keys[scope].add(limit);
    }
  }
  return keys;
}

mount("charts", (element) => {
  const charts = new Charts(element);
  return () => charts.close();
});

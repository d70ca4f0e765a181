// A heat map of every GPU of a cluster over time, for the span of the page's picker (range.js):
// `<div data-mount="heat" data-url="/api/v1/clusters/…/heat/" data-metric="id of a <select>">`. The options of the
// <select> have their unit in data-unit. Rows of one node are adjacent.

import { mount } from "../app.js";
import { Palette, watchTheme } from "./palette.js";
import { axisStart, firstTime, fromStart, showBegin } from "./first-sample.js";
import { heatRows, largestValue } from "./heat-rows.js";
import { onRangeChange, timeRange } from "./range.js";
import { fetchJson } from "./series.js";
import { node, scaleOf, text, yTicks } from "./svg-plot.js";
import { formatMoment, timeTicks } from "./time-axis.js";
import { formatValue, unitScale } from "./units.js";

const [ROW_PX, MIN_PX, MAX_PX] = [12, 120, 640];
const LABEL_PX = 11;
const SHADES = 64;
const REFETCH_MS = 10_000;
const NARROW_PX = 480; // a phone has no room for the colour scale; the tooltip shows each value
const MARGIN = { l: 110, t: 4, b: 24 };
const [SCALE_PX, EDGE_PX] = [68, 8]; // to the right of the map, with and without the colour scale

class HeatMap {
  constructor(element) {
    this.element = element;
    this.note = element.parentElement.querySelector(".ch-note");
    this.begin = element.parentElement.querySelector("[data-part=begin]");
    this.select = document.getElementById(element.dataset.metric);
    this.palette = new Palette();
    this.first = null; // the time of the first sample of this metric in the span
    const refetch = () => {
      this.first = null;
      this.fetch();
    };
    this.select.addEventListener("change", refetch);
    this.timer = setInterval(() => !document.hidden && timeRange().isLive && this.fetch(), REFETCH_MS);
    this.stops = [onRangeChange(refetch), watchTheme(() => this.#recolor())];
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(element);
    this.canvas = Object.assign(document.createElement("canvas"), { hidden: true });
    this.axes = node("svg", { "font-size": LABEL_PX });
    this.tip = document.createElement("div");
    this.tip.className = "ch-tip";
    this.tip.hidden = true;
    element.append(this.canvas, this.axes, this.tip);
    element.addEventListener("pointermove", (event) => this.#showTip(event));
    element.addEventListener("pointerleave", () => (this.tip.hidden = true));
    this.fetch();
  }

  async fetch() {
    this.request?.abort();
    const request = (this.request = new AbortController());
    const range = timeRange();
    const from = this.#start(range);
    const points = Math.max(60, Math.min(400, Math.round(this.element.clientWidth / 4)));
    try {
      const query = { metric: this.select.value, from: Math.floor(from), to: Math.ceil(range.to), points };
      const answer = await fetchJson(this.element.dataset.url, query, request.signal);
      const isFirstKnown = this.first !== null;
      const means = answer.rows.map(({ mean }) => mean);
      this.first = firstTime(answer.times, means) ?? this.first;
      // The cells of a shorter span are finer.
      if (!isFirstKnown && this.#start(range) > range.from) return this.fetch();
      this.#show(fromStart(answer, this.#start(range)), range);
    } catch (error) {
      if (error.name !== "AbortError") this.note.textContent = error.message;
    }
  }

  /** Returns where the axis begins. */
  #start({ from }) {
    return axisStart(from, Number(this.element.dataset.addedAt), this.first);
  }

  #show(answer, range) {
    this.answer = answer;
    this.note.textContent = answer.rows.length ? "" : "Nothing was measured in this period.";
    const start = this.#start(range);
    showBegin(this.begin, start > range.from, start, range.span);
    this.draw();
  }

  draw() {
    const width = this.element.clientWidth;
    if (!this.answer?.rows.length || !width) {
      this.canvas.hidden = true;
      this.axes.replaceChildren();
      return;
    }
    const { unit } = this.select.selectedOptions[0].dataset;
    const { times, step_s: step } = this.answer;
    const rows = heatRows(this.answer);
    const height = Math.max(MIN_PX, Math.min(MAX_PX, rows.length * ROW_PX + MARGIN.t + MARGIN.b));
    const right = width - (width >= NARROW_PX ? SCALE_PX : EDGE_PX);
    const rowPx = (height - MARGIN.t - MARGIN.b) / rows.length;
    const largest = unit === "%" ? 100 : largestValue(rows);
    const [from, to] = [times[0], times.at(-1) + step];
    this.map = { rows, unit, largest, from, to, right, rowPx, toX: scaleOf([from, to], MARGIN.l, right) };
    this.element.style.height = `${height}px`;
    this.#drawCells(height);
    this.#drawAxes(width, height);
  }

  #drawCells(height) {
    const { rows, largest, right, rowPx, toX } = this.map;
    const { times, step_s: step } = this.answer;
    const ratio = devicePixelRatio;
    this.canvas.hidden = false;
    this.canvas.width = right * ratio;
    this.canvas.height = height * ratio;
    this.canvas.style.width = `${right}px`;
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    const shades = shadesOf(this.palette.tone("ground"), this.palette.accent);
    rows.forEach(({ values }, row) => {
      values.forEach((value, index) => {
        if (value === null) return;
        const left = toX(times[index]);
        context.fillStyle = shades[Math.round(Math.min(Math.max(value / largest, 0), 1) * (SHADES - 1))];
        context.fillRect(left, MARGIN.t + row * rowPx, toX(times[index] + step) - left + 0.3, Math.max(rowPx - 1, 1));
      });
    });
  }

  #drawAxes(width, height) {
    const { rows, from, to, right, rowPx, toX } = this.map;
    const labels = node("g", { fill: this.palette.muted, "font-family": this.palette.sans });
    const every = Math.ceil(LABEL_PX / rowPx);
    rows.forEach(({ label }, row) => {
      const place = { x: MARGIN.l - 6, y: MARGIN.t + (row + 0.5) * rowPx, dy: "0.35em", "text-anchor": "end" };
      if (row % every === 0) labels.append(text(label, place));
    });
    for (const [at, label] of timeTicks(from, to, right - MARGIN.l))
      labels.append(text(label, { x: toX(at), y: height - 8, "text-anchor": "middle" }));
    this.axes.replaceChildren(labels);
    if (width > right + EDGE_PX) this.#drawScale(labels, height);
    for (const [name, value] of Object.entries({ width, height })) this.axes.setAttribute(name, value);
  }

  #drawScale(labels, height) {
    const { unit, largest, right } = this.map;
    const { divisor, unit: scaledUnit } = unitScale(unit, largest);
    const toY = scaleOf([0, largest / divisor], height - MARGIN.b, MARGIN.t);
    const shades = shadesOf(this.palette.tone("ground"), this.palette.accent);
    const shadePx = (height - MARGIN.t - MARGIN.b) / SHADES;
    shades.forEach((fill, index) => {
      const y = height - MARGIN.b - (index + 1) * shadePx;
      this.axes.append(node("rect", { x: right + 12, y, width: 8, height: shadePx + 0.5, fill }));
    });
    const ticks = yTicks([0, largest / divisor], 4);
    ticks.forEach((value, index) => {
      const suffix = index === ticks.length - 1 ? ` ${scaledUnit}` : "";
      const y = Math.max(toY(value), MARGIN.t + LABEL_PX / 2);
      labels.append(text(value + suffix, { x: right + 24, y, dy: "0.35em" }));
    });
  }

  #showTip(event) {
    const { answer, map } = this;
    const box = this.element.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const row = map?.rows[Math.floor((y - MARGIN.t) / map.rowPx)];
    const at = map && map.from + ((x - MARGIN.l) / (map.right - MARGIN.l)) * (map.to - map.from);
    const index = answer ? answer.times.findLastIndex((time) => time <= at) : -1;
    const value = row?.values[index] ?? null;
    this.tip.hidden = value === null || x > map.right;
    if (this.tip.hidden) return;
    const head = document.createElement("strong");
    head.textContent = row.label;
    const moment = formatMoment(answer.times[index], map.to - map.from);
    this.tip.replaceChildren(head, document.createElement("br"), `${moment}: ${formatValue(value, map.unit)}`);
    const left = Math.min(event.clientX + 14, innerWidth - this.tip.offsetWidth - 8);
    this.tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(event.clientY + 14)}px)`;
  }

  #recolor() {
    this.palette.readTheme();
    this.draw();
  }

  close() {
    clearInterval(this.timer);
    this.request?.abort();
    this.resized.disconnect();
    for (const stop of this.stops) stop();
  }
}

/** Returns the colours from `low` to `high` ("#rrggbb"). */
function shadesOf(low, high) {
  const channels = (color) => [1, 3, 5].map((start) => parseInt(color.slice(start, start + 2), 16));
  const [first, last] = [channels(low), channels(high)];
  return Array.from({ length: SHADES }, (_, index) => {
    const share = index / (SHADES - 1);
    return `rgb(${first.map((part, channel) => Math.round(part + (last[channel] - part) * share)).join(" ")})`;
  });
}

// Last, because it mounts at once what is on the page already.
mount("heat", (element) => {
  const map = new HeatMap(element);
  return () => map.close();
});

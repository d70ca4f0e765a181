// Draws the histograms of a key over steps: a column for each step, darker where more of its values lie. The chosen
// step is marked, and later ones are faint.

import { node, scaleOf, text, yTicks } from "../charts/svg-plot.js";
import { ROWS, densityOf, quantile, short } from "./density.js";

const PLOT = { x: 56, y: 8, width: 336, height: 168 };
const SIZE = { width: 400, height: 204 };
const TICKS = 4;
const BASELINE_PX = 16;
const cells = new WeakMap();
const observer = globalThis.IntersectionObserver && new IntersectionObserver(loadVisible, { rootMargin: "200px" });

/** Shows the histograms at `address` in `element`, once it can be seen, with the one at `step` marked. */
export function showHistogram(element, address, step, key) {
  const cell = cells.get(element) ?? { address };
  Object.assign(cell, { step, key });
  cells.set(element, cell);
  if (cell.steps) draw(element, cell);
  else if (!cell.isLoading) observer.observe(element);
}

function loadVisible(entries) {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    observer.unobserve(target);
    const cell = cells.get(target);
    cell.isLoading = true;
    fetch(cell.address)
      .then((response) => response.json())
      .then(({ steps }) => {
        cell.steps = steps;
        draw(target, cell);
      })
      .catch(() => {
        target.textContent = "The histograms could not be loaded. Reload the page.";
      });
  }
}

function draw(element, { steps, step, key }) {
  const index = steps.findLastIndex((item) => item.step <= step);
  if (index < 0) return;
  const { low, high, shares } = densityOf(steps);
  const columns = columnsOf(steps.map((item) => item.step));
  const darkest = Math.max(...shares.flat());
  const svg = node("svg", { class: "md-heat", viewBox: `0 0 ${SIZE.width} ${SIZE.height}`, "aria-hidden": "true" });
  shares.forEach((ofStep, place) => svg.append(columnOf(ofStep, columns[place], darkest, place > index)));
  const [x, width] = columns[index];
  svg.append(node("rect", { class: "md-chosen", x, y: PLOT.y, width, height: PLOT.height }), axes(steps, low, high));
  const line = document.createElement("p");
  line.className = "md-spread th-small th-muted";
  line.textContent = sentenceOf(steps[index]);
  element.setAttribute("aria-label", `${key} at step ${steps[index].step}: ${line.textContent}`);
  element.replaceChildren(svg, line);
}

function columnOf(shares, [x, width], darkest, isLater) {
  const column = node("g", isLater ? { class: "md-later" } : {});
  const height = PLOT.height / ROWS;
  shares.forEach((share, row) => {
    if (share <= 0) return;
    const y = PLOT.y + PLOT.height - (row + 1) * height;
    column.append(node("rect", { x, y, width, height, "fill-opacity": Math.sqrt(share / darkest).toFixed(3) }));
  });
  return column;
}

/** Returns left edge and width of each step's column, which ends halfway to the next step. */
function columnsOf(steps) {
  if (steps.length === 1) return [[PLOT.x, PLOT.width]];
  const toX = scaleOf([steps[0], steps.at(-1)], PLOT.x, PLOT.x + PLOT.width);
  const edges = steps.map((step, place) => (place ? (toX(steps[place - 1]) + toX(step)) / 2 : PLOT.x));
  edges.push(PLOT.x + PLOT.width);
  return steps.map((_, place) => [edges[place], Math.max(edges[place + 1] - edges[place], 1)]);
}

function axes(steps, low, high) {
  const group = node("g", { class: "md-axes" });
  const bottom = PLOT.y + PLOT.height;
  group.append(node("path", { d: `M${PLOT.x} ${PLOT.y}V${bottom}H${PLOT.x + PLOT.width}` }));
  const toY = scaleOf([low, high], bottom, PLOT.y);
  for (const value of high > low ? yTicks([low, high], TICKS) : [low]) {
    const y = high > low ? toY(value) : bottom;
    group.append(text(short(value), { x: PLOT.x - 6, y, dy: "0.35em", "text-anchor": "end" }));
  }
  group.append(text(`step ${steps[0].step}`, { x: PLOT.x, y: bottom + BASELINE_PX }));
  if (steps.length > 1) {
    group.append(text(steps.at(-1).step, { x: PLOT.x + PLOT.width, y: bottom + BASELINE_PX, "text-anchor": "end" }));
  }
  return group;
}

function sentenceOf(item) {
  const count = Math.round(item.counts.reduce((sum, value) => sum + value, 0)).toLocaleString("en");
  const [low, from, to, high] = [item.low, quantile(item, 0.25), quantile(item, 0.75), item.high].map(short);
  return `${count} values from ${low} to ${high}, half of them between ${from} and ${to}`;
}

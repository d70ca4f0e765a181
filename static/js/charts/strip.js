// Spans of time above the charts, on their axis: the runs that held a GPU, the phases of a run. Links, not drawings.

import { MARGIN } from "./panel.js";
import { moment, ticks } from "./timeaxis.js";

const LEAST_PERCENT = 0.15;
const TICKS = 0.7; // fewer than a chart of this width has: there are no lines to go with them

export class Strip {
  constructor(element, bands, palette) {
    Object.assign(this, { element, bands, palette });
    element.style.setProperty("--left", `${MARGIN.l}px`);
    element.style.setProperty("--right", `${MARGIN.r}px`);
  }

  draw({ from, to }) {
    const shown = this.bands.filter((band) => band.to > from && band.from < to);
    this.element.hidden = this.bands.length === 0;
    if (this.element.hidden) return;
    // A redraw must not take the focus from a link.
    const key = JSON.stringify([shown, Math.round(from), Math.round(to), this.element.clientWidth]);
    if (key === this.key || this.element.contains(document.activeElement)) return;
    this.key = key;
    const axis = document.createElement("div");
    axis.className = "ch-strip-axis";
    axis.setAttribute("aria-hidden", "true");
    for (const [at, label] of ticks(from, to, (this.element.clientWidth - MARGIN.l - MARGIN.r) * TICKS)) {
      const tick = document.createElement("span");
      tick.style.left = `${percent(at, from, to)}%`;
      tick.textContent = label;
      axis.append(tick);
    }
    const list = document.createElement("ol");
    list.append(...shown.map((band) => mark(band, from, to)));
    this.element.replaceChildren(list, axis);
  }
}

function mark(band, from, to) {
  const item = document.createElement("li");
  const left = percent(Math.max(band.from, from), from, to);
  const right = percent(Math.min(band.to, to), from, to);
  item.style.left = `${left}%`;
  item.style.width = `${Math.max(right - left, LEAST_PERCENT)}%`;
  item.style.setProperty("--tone", `var(--th-${band.tone ?? "running"})`);
  const name = document.createElement(band.url ? "a" : "span");
  if (band.url) name.href = band.url;
  name.textContent = band.label;
  const until = band.to > to ? "" : ` to ${moment(band.to, Infinity)}`;
  item.title = `${band.label}: from ${moment(band.from, Infinity)}${until}`;
  item.append(name);
  return item;
}

function percent(at, from, to) {
  return ((at - from) / (to - from)) * 100;
}

// Spans of time above the charts, on their axis: the runs on a GPU, or the phases of a run. They are links and text.

import { MARGIN } from "./panel.js";
import { formatMoment, timeTicks } from "./time-axis.js";

const MIN_PERCENT = 0.15;
const TICK_SHARE = 0.7; // of the ticks that a chart of this width has: the strip has no grid lines

export class Strip {
  constructor(element, bands, palette) {
    Object.assign(this, { element, bands, palette });
    element.style.setProperty("--left", `${MARGIN.l}px`);
    element.style.setProperty("--right", `${MARGIN.r}px`);
  }

  draw({ from, to }) {
    const visible = this.bands.filter((band) => band.to > from && band.from < to);
    this.element.hidden = this.bands.length === 0;
    if (this.element.hidden) return;
    // Drawing again would take the focus from a link.
    const key = JSON.stringify([visible, Math.round(from), Math.round(to), this.element.clientWidth]);
    if (key === this.key || this.element.contains(document.activeElement)) return;
    this.key = key;
    const axis = document.createElement("div");
    axis.className = "ch-strip-axis";
    axis.setAttribute("aria-hidden", "true");
    for (const [at, label] of timeTicks(from, to, (this.element.clientWidth - MARGIN.l - MARGIN.r) * TICK_SHARE)) {
      const tick = document.createElement("span");
      tick.style.left = `${percent(at, from, to)}%`;
      tick.textContent = label;
      axis.append(tick);
    }
    const list = document.createElement("ol");
    list.append(...visible.map((band) => bandItem(band, from, to)));
    this.element.replaceChildren(list, axis);
  }
}

function bandItem(band, from, to) {
  const item = document.createElement("li");
  const left = percent(Math.max(band.from, from), from, to);
  const right = percent(Math.min(band.to, to), from, to);
  item.style.left = `${left}%`;
  item.style.width = `${Math.max(right - left, MIN_PERCENT)}%`;
  item.style.setProperty("--tone", `var(--th-${band.tone ?? "running"})`);
  const name = document.createElement(band.url ? "a" : "span");
  if (band.url) name.href = band.url;
  name.textContent = band.label;
  const until = band.to > to ? "" : ` to ${formatMoment(band.to, Infinity)}`;
  item.title = `${band.label}: from ${formatMoment(band.from, Infinity)}${until}`;
  item.append(name);
  return item;
}

function percent(at, from, to) {
  return ((at - from) / (to - from)) * 100;
}

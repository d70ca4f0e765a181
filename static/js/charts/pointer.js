// The cross-hair in step across all charts, the values under it, and the choice of a span to zoom into.

import { MARGIN, swatch } from "./panel.js";
import { moment } from "./timeaxis.js";
import { shown } from "./units.js";

const LEAST_DRAG_PX = 6;
const SLOP_PX = 8;
const MOST_IN_A_COLUMN = 8;

export class Pointer {
  /** `grid`: {panels, view, zoom(from, to), zoomOut()}. */
  constructor(grid, root) {
    this.grid = grid;
    this.tip = document.createElement("div");
    this.tip.className = "ch-tip";
    this.tip.hidden = true;
    this.said = document.createElement("div");
    this.said.className = "th-off";
    this.said.setAttribute("role", "status");
    root.append(this.tip, this.said);
  }

  watch(panel) {
    const { plot } = panel;
    plot.addEventListener("pointermove", (event) => this.#moved(panel, event));
    plot.addEventListener("pointerleave", () => this.drag || this.leave());
    plot.addEventListener("pointerdown", (event) => this.#down(panel, event));
    plot.addEventListener("pointerup", (event) => this.#up(panel, event));
    plot.addEventListener("pointercancel", () => this.leave());
    plot.addEventListener("dblclick", () => this.grid.zoomOut());
    plot.addEventListener("keydown", (event) => this.#key(panel, event));
    plot.addEventListener("blur", () => this.leave());
  }

  leave() {
    this.drag = null;
    this.at = null;
    cancelAnimationFrame(this.frame);
    this.tip.hidden = true;
    for (const panel of this.grid.panels) {
      if (panel.isEmpty) continue;
      panel.cross(null);
      panel.plot.querySelector(".ch-chosen").hidden = true;
    }
  }

  #moved(panel, event) {
    const x = event.clientX - panel.plot.getBoundingClientRect().left;
    const y = event.clientY;
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => {
      this.#show(panel, this.#time(x), y);
      if (this.drag) this.#choose(this.drag.at, this.at);
    });
  }

  #show(panel, at, y) {
    this.at = at;
    const x = this.#x(at);
    for (const other of this.grid.panels) if (!other.isEmpty && other.isInView) other.cross(at, x);
    this.#tell(panel, at, x, y);
  }

  #tell(panel, at, x, y) {
    const values = panel.values(at);
    const head = document.createElement("strong");
    head.textContent = moment(at, this.grid.view.to - this.grid.view.from);
    const half = values.length > MOST_IN_A_COLUMN ? Math.ceil(values.length / 2) : values.length;
    const columns = document.createElement("div");
    columns.append(list(values.slice(0, half), panel.spec), list(values.slice(half), panel.spec));
    this.tip.replaceChildren(head, columns);
    this.tip.hidden = false;
    const box = panel.plot.getBoundingClientRect();
    const isRight = box.left + x + SLOP_PX * 2 + this.tip.offsetWidth < innerWidth;
    const left = isRight ? box.left + x + SLOP_PX * 2 : Math.max(SLOP_PX, box.left + x - this.tip.offsetWidth - SLOP_PX * 2);
    const top = Math.min(y ?? box.top, innerHeight - this.tip.offsetHeight - SLOP_PX);
    this.tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(Math.max(SLOP_PX, top))}px)`;
  }

  #down(panel, event) {
    if (event.button !== 0 || event.pointerType === "touch") return;
    this.drag = { at: this.#time(event.clientX - panel.plot.getBoundingClientRect().left), x: event.clientX };
    panel.plot.setPointerCapture(event.pointerId);
  }

  #up(panel, event) {
    const { drag } = this;
    this.drag = null;
    if (!drag) return;
    const to = this.#time(event.clientX - panel.plot.getBoundingClientRect().left);
    if (Math.abs(event.clientX - drag.x) >= LEAST_DRAG_PX) {
      this.leave();
      this.grid.zoom(Math.min(drag.at, to), Math.max(drag.at, to));
    }
  }

  #choose(one, other) {
    const [from, to] = [Math.min(one, other), Math.max(one, other)].map((at) => this.#x(at));
    for (const panel of this.grid.panels) {
      const mark = panel.plot.querySelector(".ch-chosen");
      mark.hidden = false;
      mark.style.transform = `translateX(${from}px)`;
      mark.style.width = `${to - from}px`;
    }
  }

  #key(panel, event) {
    const { from, to } = this.grid.view;
    const step = ((to - from) / this.#width()) * (event.shiftKey ? 40 : 4);
    const at = this.at ?? to;
    const half = (to - from) / 4;
    const moves = {
      ArrowLeft: () => this.#show(panel, Math.max(from, at - step)), ArrowRight: () => this.#show(panel, Math.min(to, at + step)),
      Home: () => this.#show(panel, from), End: () => this.#show(panel, to), Escape: () => this.leave(),
      "+": () => this.grid.zoom(at - half, at + half), "-": () => this.grid.zoomOut(),
    };
    const move = moves[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    move();
    if (this.at !== null && this.at !== undefined) {
      this.said.textContent = `${moment(this.at, to - from)}: ${panel.values(this.at).map(({ label, mean }) => `${label} ${shown(mean, panel.spec.unit)}`).join(", ")}`;
    }
  }

  #width() {
    return Math.max(1, this.grid.view.width - MARGIN.l - MARGIN.r);
  }

  #time(x) {
    const { from, to } = this.grid.view;
    return from + (Math.min(Math.max(x - MARGIN.l, 0), this.#width()) / this.#width()) * (to - from);
  }

  #x(at) {
    const { from, to } = this.grid.view;
    return MARGIN.l + ((at - from) / (to - from)) * this.#width();
  }
}

function list(values, { unit, label: metric }) {
  const found = document.createElement("ul");
  for (const { label, color, dash, mean, max } of values) {
    const item = document.createElement("li");
    const [name, value, most] = ["span", "b", "small"].map((tag) => document.createElement(tag));
    name.textContent = label || metric;
    value.textContent = shown(mean, unit);
    most.textContent = max !== null && mean !== null && max > mean * 1.02 + 0.5 ? `max ${shown(max, unit)}` : "";
    item.append(swatch({ color, dash }), name, value, most);
    found.append(item);
  }
  return found;
}

// The cross-hair in step across all charts, the values under it, and the choice of a span to zoom into.

import { swatch } from "./panel.js";
import { atX, plotWidth, shareOf, valueAt, xOf } from "./placing.js";
import { moment } from "./timeaxis.js";

const LEAST_DRAG_PX = 6;
const SLOP_PX = 8;
const MOST_IN_A_COLUMN = 8;

export class Pointer {
  /**
   * `grid`: {panels, zoom(from, to), zoomOut()}. A panel: {plot, view, isEmpty, isInView, spec, cross(at, x), values(at), word(value)};
   * its view says where things lie (placing.js), and by `moment(at)` how its x is said, where that is no time.
   */
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
      if (!panel.view) return;
      this.#show(panel, atX(x, panel.view), y);
      if (this.drag) this.#choose(this.drag.at, this.at);
    });
  }

  #show(panel, at, y) {
    this.at = at;
    for (const other of this.grid.panels) {
      if (other.isEmpty || !other.isInView || !other.view) continue;
      const isThere = at >= other.view.from && at <= other.view.to;
      other.cross(isThere ? at : null, isThere ? xOf(at, other.view) : 0);
    }
    this.#tell(panel, at, xOf(at, panel.view), y);
  }

  #tell(panel, at, x, y) {
    const values = panel.values(at);
    const head = document.createElement("strong");
    head.textContent = said(at, panel.view);
    const half = values.length > MOST_IN_A_COLUMN ? Math.ceil(values.length / 2) : values.length;
    const columns = document.createElement("div");
    columns.append(list(values.slice(0, half), panel), list(values.slice(half), panel));
    this.tip.replaceChildren(head, columns);
    this.tip.hidden = false;
    const box = panel.plot.getBoundingClientRect();
    const isRight = box.left + x + SLOP_PX * 2 + this.tip.offsetWidth < innerWidth;
    const left = isRight ? box.left + x + SLOP_PX * 2 : Math.max(SLOP_PX, box.left + x - this.tip.offsetWidth - SLOP_PX * 2);
    const top = Math.min(y ?? box.top, innerHeight - this.tip.offsetHeight - SLOP_PX);
    this.tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(Math.max(SLOP_PX, top))}px)`;
  }

  #down(panel, event) {
    if (event.button !== 0 || event.pointerType === "touch" || !panel.view) return;
    this.drag = { at: atX(event.clientX - panel.plot.getBoundingClientRect().left, panel.view), x: event.clientX };
    panel.plot.setPointerCapture(event.pointerId);
  }

  #up(panel, event) {
    const { drag } = this;
    this.drag = null;
    if (!drag) return;
    const to = atX(event.clientX - panel.plot.getBoundingClientRect().left, panel.view);
    if (Math.abs(event.clientX - drag.x) >= LEAST_DRAG_PX) {
      this.leave();
      this.grid.zoom(Math.min(drag.at, to), Math.max(drag.at, to));
    }
  }

  #choose(one, other) {
    for (const { plot, view } of this.grid.panels) {
      const mark = plot.querySelector(".ch-chosen");
      if (!view) continue;
      const [from, to] = [Math.min(one, other), Math.max(one, other)].map((at) => xOf(Math.min(Math.max(at, view.from), view.to), view));
      mark.hidden = to - from < 1;
      mark.style.transform = `translateX(${from}px)`;
      mark.style.width = `${to - from}px`;
    }
  }

  #key(panel, event) {
    const { view } = panel;
    if (!view) return;
    const at = this.at ?? view.to;
    const moved = (share) => valueAt(Math.min(Math.max(shareOf(at, view) + share, 0), 1), view);
    const step = (event.shiftKey ? 40 : 4) / plotWidth(view);
    const moves = {
      ArrowLeft: () => this.#show(panel, moved(-step)), ArrowRight: () => this.#show(panel, moved(step)),
      Home: () => this.#show(panel, view.from), End: () => this.#show(panel, view.to), Escape: () => this.leave(),
      "+": () => this.grid.zoom(moved(-0.25), moved(0.25)), "-": () => this.grid.zoomOut(),
    };
    const move = moves[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    move();
    if (this.at !== null && this.at !== undefined) {
      this.said.textContent = `${said(this.at, view)}: ${panel.values(this.at).map(({ label, mean }) => `${label} ${panel.word(mean)}`).join(", ")}`;
    }
  }
}

function said(at, view) {
  return view.moment ? view.moment(at) : moment(at, view.to - view.from);
}

function list(values, panel) {
  const found = document.createElement("ul");
  for (const { label, color, dash, mean, max } of values) {
    const item = document.createElement("li");
    const [name, value, most] = ["span", "b", "small"].map((tag) => document.createElement(tag));
    name.textContent = label || panel.spec.label;
    value.textContent = panel.word(mean);
    most.textContent = panel.beside(mean, max);
    item.append(swatch({ color, dash }), name, value, most);
    found.append(item);
  }
  return found;
}

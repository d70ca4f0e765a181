// The cross-hair, which moves in all charts together, the values under it, and the selection of a span to zoom into.

import { swatch } from "./panel.js";
import { valueAtX, plotWidth, fractionOf, valueAtFraction, xOfValue } from "./coordinates.js";
import { formatMoment } from "./time-axis.js";

const MIN_DRAG_PX = 6;
const GAP_PX = 8;
const MAX_PER_COLUMN = 8;

export class Pointer {
  /**
   * `grid`: {panels, zoom(from, to, panel), zoomOut(panel), sharesAxis?(panel, other)}. A panel is a Panel. Its `view`
   * is described in coordinates.js; a function `formatX(at)` in it formats the x value where that is not a time. A
   * panel may have a function `eventsAt(at)`, which returns sentences about what happened there.
   */
  constructor(grid, root) {
    this.grid = grid;
    this.tip = document.createElement("div");
    this.tip.className = "ch-tip";
    this.tip.hidden = true;
    this.liveRegion = document.createElement("div");
    this.liveRegion.className = "th-off";
    this.liveRegion.setAttribute("role", "status");
    root.append(this.tip, this.liveRegion);
  }

  watch(panel) {
    const { plot } = panel;
    plot.addEventListener("pointermove", (event) => this.#handleMove(panel, event));
    plot.addEventListener("pointerleave", () => this.drag || this.clear());
    plot.addEventListener("pointerdown", (event) => this.#handleDown(panel, event));
    plot.addEventListener("pointerup", (event) => this.#handleUp(panel, event));
    plot.addEventListener("pointercancel", () => this.clear());
    plot.addEventListener("dblclick", () => this.grid.zoomOut(panel));
    plot.addEventListener("keydown", (event) => this.#handleKey(panel, event));
    // A press on another chart moves the focus there, when it has already begun to select.
    plot.addEventListener("blur", () => this.drag || this.clear());
  }

  clear() {
    this.drag = null;
    this.at = null;
    cancelAnimationFrame(this.frame);
    this.tip.hidden = true;
    for (const panel of this.grid.panels) {
      if (panel.isEmpty) continue;
      panel.showCrosshair(null);
      panel.plot.querySelector(".ch-chosen").hidden = true;
    }
  }

  #handleMove(panel, event) {
    const x = event.clientX - panel.plot.getBoundingClientRect().left;
    const y = event.clientY;
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => {
      if (!panel.view) return;
      this.#showAt(panel, valueAtX(x, panel.view), y);
      if (this.drag) this.#showSelection(panel, this.drag.at, this.at);
    });
  }

  #showAt(panel, at, y) {
    this.at = at;
    for (const each of this.grid.panels) {
      if (each.isEmpty || !each.isInView || !each.view) continue;
      const isThere = at >= each.view.from && at <= each.view.to && this.#sharesAxis(panel, each);
      each.showCrosshair(isThere ? at : null, isThere ? xOfValue(at, each.view) : 0);
    }
    this.#showTooltip(panel, at, xOfValue(at, panel.view), y);
  }

  #showTooltip(panel, at, x, y) {
    const values = panel.valuesAt(at);
    const head = document.createElement("strong");
    head.textContent = momentText(at, panel.view);
    const half = values.length > MAX_PER_COLUMN ? Math.ceil(values.length / 2) : values.length;
    const columns = document.createElement("div");
    columns.append(valueList(values.slice(0, half), panel), valueList(values.slice(half), panel));
    this.tip.replaceChildren(head, columns, ...eventTexts(panel, at).map(paragraph));
    this.tip.hidden = false;
    const box = panel.plot.getBoundingClientRect();
    const isRight = box.left + x + GAP_PX * 2 + this.tip.offsetWidth < innerWidth;
    const left = isRight
      ? box.left + x + GAP_PX * 2
      : Math.max(GAP_PX, box.left + x - this.tip.offsetWidth - GAP_PX * 2);
    const top = Math.min(y ?? box.top, innerHeight - this.tip.offsetHeight - GAP_PX);
    this.tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(Math.max(GAP_PX, top))}px)`;
  }

  #handleDown(panel, event) {
    if (event.button !== 0 || event.pointerType === "touch" || !panel.view) return;
    this.drag = { at: valueAtX(event.clientX - panel.plot.getBoundingClientRect().left, panel.view), x: event.clientX };
    panel.plot.setPointerCapture(event.pointerId);
  }

  #handleUp(panel, event) {
    const { drag } = this;
    this.drag = null;
    if (!drag) return;
    const to = valueAtX(event.clientX - panel.plot.getBoundingClientRect().left, panel.view);
    if (Math.abs(event.clientX - drag.x) >= MIN_DRAG_PX) {
      this.clear();
      this.grid.zoom(Math.min(drag.at, to), Math.max(drag.at, to), panel);
    }
  }

  #sharesAxis(panel, other) {
    return !this.grid.sharesAxis || this.grid.sharesAxis(panel, other);
  }

  #showSelection(panel, first, second) {
    for (const other of this.grid.panels) {
      const { plot, view } = other;
      const mark = plot.querySelector(".ch-chosen");
      if (!view || !this.#sharesAxis(panel, other)) continue;
      const [from, to] = [Math.min(first, second), Math.max(first, second)].map((at) =>
        xOfValue(Math.min(Math.max(at, view.from), view.to), view),
      );
      mark.hidden = to - from < 1;
      mark.style.transform = `translateX(${from}px)`;
      mark.style.width = `${to - from}px`;
    }
  }

  #handleKey(panel, event) {
    const { view } = panel;
    if (!view) return;
    const at = this.at ?? view.to;
    const shifted = (share) => valueAtFraction(Math.min(Math.max(fractionOf(at, view) + share, 0), 1), view);
    const step = (event.shiftKey ? 40 : 4) / plotWidth(view);
    const moves = {
      ArrowLeft: () => this.#showAt(panel, shifted(-step)),
      ArrowRight: () => this.#showAt(panel, shifted(step)),
      Home: () => this.#showAt(panel, view.from),
      End: () => this.#showAt(panel, view.to),
      Escape: () => this.clear(),
      "+": () => this.grid.zoom(shifted(-0.25), shifted(0.25), panel),
      "-": () => this.grid.zoomOut(panel),
    };
    const move = moves[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    move();
    if (this.at !== null && this.at !== undefined) {
      const values = panel.valuesAt(this.at).map(({ label, mean }) => `${label} ${panel.format(mean)}`);
      const texts = [`${momentText(this.at, view)}: ${values.join(", ")}`, ...eventTexts(panel, this.at)];
      this.liveRegion.textContent = texts.join(". ");
    }
  }
}

function momentText(at, view) {
  return view.formatX ? view.formatX(at) : formatMoment(at, view.to - view.from);
}

function paragraph(text) {
  return Object.assign(document.createElement("p"), { textContent: text });
}

function eventTexts(panel, at) {
  return panel.eventsAt?.(at) ?? [];
}

function valueList(values, panel) {
  const listElement = document.createElement("ul");
  for (const { label, color, dash, mean, max } of values) {
    const item = document.createElement("li");
    const [name, value, detail] = ["span", "b", "small"].map((tag) => document.createElement(tag));
    name.textContent = label || panel.spec.label;
    value.textContent = panel.format(mean);
    detail.textContent = panel.detail(mean, max);
    item.append(swatch({ color, dash }), name, value, detail);
    listElement.append(item);
  }
  return listElement;
}

// One row of chips for all charts: which line is which GPU. A click hides or shows it everywhere, a double click shows it alone.

import { swatch } from "./panel.js";
import { HOST } from "./series.js";

export class Legend {
  /** `subjects`: {id: {label, title?, …facts}}, as the page tells them; others are named by their series. */
  constructor(element, subjects, palette, { onToggle, onPoint }) {
    Object.assign(this, { element, subjects, palette, onToggle, onPoint });
    this.hidden = new Set();
    this.chips = new Map();
    this.named = new Map(Object.entries(subjects));
    element.setAttribute("role", "group");
    element.setAttribute("aria-label", "Lines shown");
  }

  /** Learns the subjects of these series, in their order; the page's own names go first. */
  learn(sources) {
    for (const source of sources) {
      for (const gpu of source.gpus) {
        if (!this.named.has(gpu.uuid)) {
          const name = gpu.index === null || gpu.index === undefined ? gpu.name : `GPU ${gpu.index}`;
          this.named.set(gpu.uuid, { label: sources.length > 1 ? `${source.node} ${name}` : name, title: gpu.name });
        }
        this.#chip(gpu.uuid);
      }
      if (sources.length > 1 && source.rows.get(HOST)?.size) {
        this.named.set(source.node, { label: source.node, title: "the machine itself" });
        this.#chip(source.node);
      }
    }
    this.element.hidden = this.chips.size < 2;
  }

  /** Chips for subjects that the page itself names ({label, title}), in this order. */
  list(subjects) {
    for (const [id, named] of subjects) {
      this.named.set(id, named);
      this.#chip(id);
    }
    this.element.hidden = this.chips.size < 2;
  }

  /** What an address says is hidden. */
  hide(ids) {
    this.hidden = new Set([...ids].filter((id) => this.chips.has(id)));
    this.#press();
  }

  shows(id) {
    return !this.hidden.has(id);
  }

  label(id, scope, nodes) {
    if (scope === "host" && nodes < 2) return "";
    return this.named.get(id)?.label ?? id;
  }

  fact(id, name) {
    return this.named.get(id)?.[name] ?? null;
  }

  recolor() {
    for (const [id, chip] of this.chips) chip.querySelector(".ch-swatch").replaceWith(swatch(this.palette.of(id)));
  }

  #chip(id) {
    if (this.chips.has(id)) return;
    const { label, title } = this.named.get(id);
    const chip = document.createElement("button");
    chip.type = "button";
    chip.className = "ch-chip";
    chip.dataset.subject = id;
    chip.title = `${title ? `${title}. ` : ""}Click to hide or show, double click for this one alone.`;
    chip.append(swatch(this.palette.of(id)), label);
    chip.setAttribute("aria-pressed", "true");
    chip.addEventListener("click", (event) => (event.detail > 1 || event.shiftKey ? this.#alone(id) : this.#toggle(id)));
    for (const [event, point] of [["pointerenter", id], ["focus", id], ["pointerleave", null], ["blur", null]]) {
      chip.addEventListener(event, () => this.onPoint(this.shows(id) ? point : null));
    }
    this.chips.set(id, chip);
    this.element.append(chip);
  }

  #toggle(id) {
    if (!this.hidden.delete(id)) this.hidden.add(id);
    this.#changed();
  }

  /** Again on the only one that is shown: all of them. */
  #alone(id) {
    const others = [...this.chips.keys()].filter((other) => other !== id);
    const isAlone = this.isAlone === id;
    this.hidden = new Set(isAlone ? [] : others);
    this.isAlone = isAlone ? null : id;
    this.#changed();
  }

  #changed() {
    if (this.hidden.size === this.chips.size) this.hidden.clear(); // charts without a line help nobody
    if (this.hidden.size !== this.chips.size - 1) this.isAlone = null;
    this.#press();
    this.onPoint(null);
    this.onToggle();
  }

  #press() {
    for (const [id, chip] of this.chips) chip.setAttribute("aria-pressed", String(this.shows(id)));
  }
}

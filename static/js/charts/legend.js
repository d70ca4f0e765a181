// The legend of all charts: a chip for each subject, such as a GPU. A click hides or shows its lines in all charts, a
// double click shows them alone.

import { swatch } from "./panel.js";
import { HOST } from "./series.js";

export class Legend {
  /** `subjects`: {id: {label, title?, …properties}} from the page. Other subjects are named after their series. */
  constructor(element, subjects, palette, { onToggle, onHighlight }) {
    Object.assign(this, { element, subjects, palette, onToggle, onHighlight });
    this.hidden = new Set();
    this.chips = new Map();
    this.names = new Map(Object.entries(subjects));
    element.setAttribute("role", "group");
    element.setAttribute("aria-label", "Lines shown");
  }

  /** Adds chips for the subjects of these series, in their order. Names from the page have precedence. */
  addSources(sources) {
    for (const source of sources) {
      for (const gpu of source.gpus) {
        if (!this.names.has(gpu.uuid)) {
          const name = gpu.index === null || gpu.index === undefined ? gpu.name : `GPU ${gpu.index}`;
          this.names.set(gpu.uuid, { label: sources.length > 1 ? `${source.node} ${name}` : name, title: gpu.name });
        }
        this.#addChip(gpu.uuid);
      }
      if (sources.length > 1 && source.rows.get(HOST)?.size) {
        this.names.set(source.node, { label: source.node, title: "the node itself" });
        this.#addChip(source.node);
      }
    }
    this.element.hidden = this.chips.size < 2;
  }

  /** Adds chips for subjects, [[id, {label, title}]], in this order. */
  addSubjects(subjects) {
    for (const [id, subject] of subjects) {
      this.names.set(id, subject);
      this.#addChip(id);
    }
    this.element.hidden = this.chips.size < 2;
  }

  /** Hides these subjects and shows all others, without calling back. */
  setHidden(ids) {
    this.hidden = new Set([...ids].filter((id) => this.chips.has(id)));
    this.#updatePressed();
  }

  isVisible(id) {
    return !this.hidden.has(id);
  }

  label(id, scope, nodes) {
    if (scope === "host" && nodes < 2) return "";
    return this.names.get(id)?.label ?? id;
  }

  property(id, name) {
    return this.names.get(id)?.[name] ?? null;
  }

  recolor() {
    for (const [id, chip] of this.chips) chip.querySelector(".ch-swatch").replaceWith(swatch(this.palette.styleOf(id)));
  }

  #addChip(id) {
    if (this.chips.has(id)) return;
    const { label, title } = this.names.get(id);
    const chip = document.createElement("button");
    chip.type = "button";
    chip.className = "ch-chip";
    chip.dataset.subject = id;
    chip.title = `${title ? `${title}. ` : ""}Click to hide or show, double-click to show only this one.`;
    chip.append(swatch(this.palette.styleOf(id)), label);
    chip.setAttribute("aria-pressed", "true");
    chip.addEventListener("click", (event) =>
      event.detail > 1 || event.shiftKey ? this.#showOnly(id) : this.#toggleChip(id),
    );
    for (const [event, highlightedId] of [
      ["pointerenter", id],
      ["focus", id],
      ["pointerleave", null],
      ["blur", null],
    ]) {
      chip.addEventListener(event, () => this.onHighlight(this.isVisible(id) ? highlightedId : null));
    }
    this.chips.set(id, chip);
    this.element.append(chip);
  }

  #toggleChip(id) {
    if (!this.hidden.delete(id)) this.hidden.add(id);
    this.#notify();
  }

  /** Shows only this subject, or all if it is the only one already. */
  #showOnly(id) {
    const others = [...this.chips.keys()].filter((other) => other !== id);
    const isOnly = this.onlyId === id;
    this.hidden = new Set(isOnly ? [] : others);
    this.onlyId = isOnly ? null : id;
    this.#notify();
  }

  #notify() {
    if (this.hidden.size === this.chips.size) this.hidden.clear(); // at least one line is always visible
    if (this.hidden.size !== this.chips.size - 1) this.onlyId = null;
    this.#updatePressed();
    this.onHighlight(null);
    this.onToggle();
  }

  #updatePressed() {
    for (const [id, chip] of this.chips) chip.setAttribute("aria-pressed", String(this.isVisible(id)));
  }
}

// The panels that people arranged for the experiment, above the automatic charts. Everybody of the workspace sees the
// same ones; contributors change them, and each change is stored at once.

import { askConfirmation } from "../../confirm.js";
import { fetchJson } from "../../charts/series.js";
import { ArrangedPanel, titleOfPanel } from "./arranged-panel.js";
import { makeDraggable } from "./drag.js";
import { saveLayout } from "./layout-hub.js";
import { addPanel, movePanel, replacePanel } from "./order.js";

const CONFLICT = 409;
const NEW_PANEL = {
  metrics: [],
  title: "",
  x: "step",
  log_x: false,
  log_y: false,
  smoothing: 0,
  width: 1,
  is_pinned: false,
};
const STEPS = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };

export class PanelBoard {
  /**
   * `root` contains the parts of templates/tracking/_panels.html. `config`: {address, layout: {panels, revision}}.
   * `allKeys()` returns the metrics that can be chosen. Only contributors have the parts for changes.
   */
  constructor(root, config, grid, allKeys) {
    Object.assign(this, { root, config, grid, allKeys });
    this.part = (name) => root.querySelector(`[data-part=${name}]`);
    this.list = this.part("panels");
    this.charts = new Map(); // panel -> chart
    this.canEdit = Boolean(this.part("panel-tools"));
    this.revision = config.layout.revision;
    this.saved = config.layout.panels;
    this.#show(this.saved);
    if (!this.canEdit) return;
    this.part("add-panel").addEventListener("click", () => this.#openNew());
    this.part("reset-panels").addEventListener("click", () => this.#askReset());
  }

  /** Adds a panel at once. What `panel` lacks is as in a new one. */
  add(panel) {
    const added = { ...NEW_PANEL, ...panel };
    return this.#act(addPanel(this.panels, added), `${titleOfPanel(added)} is now among the panels.`);
  }

  #openNew() {
    this.#openDialog("Add panel", NEW_PANEL, (panel) => this.#change(addPanel(this.panels, panel)));
  }

  async #openDialog(heading, panel, save) {
    // Most readers of a page never open it.
    const { openPanelDialog } = await import("./dialog.js");
    openPanelDialog(this.part("panel-dialog"), { heading, panel, keys: this.allKeys() }, save);
  }

  #show(panels) {
    this.panels = panels;
    for (const [panel, chart] of this.charts) {
      if (panels.includes(panel)) continue;
      this.grid.removeArranged(chart);
      this.charts.delete(panel);
    }
    panels.forEach((panel, index) => {
      if (!this.charts.has(panel)) this.charts.set(panel, this.#makeChart(panel));
      const { element } = this.charts.get(panel);
      // An element that is already there keeps the focus.
      if (this.list.children[index] !== element) this.list.insertBefore(element, this.list.children[index] ?? null);
    });
    this.root.classList.toggle("cv-arranged", panels.length > 0);
  }

  #makeChart(panel) {
    const tools = this.canEdit ? [...this.part("panel-tools").content.cloneNode(true).children] : [];
    const chart = new ArrangedPanel(panel, this.list, tools);
    this.grid.addArranged(chart);
    if (tools.length) this.#connectTools(chart);
    return chart;
  }

  #connectTools({ panel, element }) {
    const name = titleOfPanel(panel);
    const [handle, menu] = [element.querySelector(".cv-handle"), element.querySelector(".cv-menu")];
    // The handle comes first in the head.
    element.querySelector("figcaption").prepend(handle);
    handle.setAttribute("aria-label", `Move ${name}`);
    menu.querySelector("summary").setAttribute("aria-label", `Options of ${name}`);
    menu.querySelector("[data-act=pin] span").textContent = panel.is_pinned ? "Unpin" : "Pin to the top";
    element.classList.toggle("cv-pinned", panel.is_pinned);
    for (const button of menu.querySelectorAll("[data-width]")) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.width) === panel.width));
      button.addEventListener("click", () => this.#replace(panel, { width: Number(button.dataset.width) }, menu));
    }
    const acts = {
      edit: () =>
        this.#openDialog(`Edit ${name}`, panel, (changed) => this.#change(this.#replaced(panel, changed))),
      earlier: () => this.#move(panel, -1),
      later: () => this.#move(panel, 1),
      pin: () => this.#replace(panel, { is_pinned: !panel.is_pinned }),
      remove: () => {
        this.#act(
          this.panels.filter((other) => other !== panel),
          `${name} is removed.`,
        );
        this.part("add-panel").focus();
      },
    };
    for (const button of menu.querySelectorAll("[data-act]")) {
      button.addEventListener("click", () => {
        menu.open = false;
        acts[button.dataset.act]();
      });
    }
    handle.addEventListener("keydown", (event) => {
      const step = STEPS[event.key];
      if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      this.#move(panel, step);
    });
    makeDraggable(handle, element, this.list, (_, other, isAfter) => this.#drop(panel, other, isAfter));
  }

  #replaced(panel, changed) {
    return replacePanel(this.panels, this.panels.indexOf(panel), changed);
  }

  #replace(panel, changes) {
    const changed = { ...panel, ...changes };
    this.#act(this.#replaced(panel, changed), `${titleOfPanel(panel)} is changed.`);
    this.charts.get(changed)?.element.querySelector(".cv-menu > summary").focus();
  }

  #move(panel, step) {
    const from = this.panels.indexOf(panel);
    this.#moveTo(panel, from, from + step);
    this.charts.get(panel)?.element.querySelector(".cv-handle").focus();
  }

  #drop(panel, otherElement, isAfter) {
    const from = this.panels.indexOf(panel);
    const others = this.panels.filter((other) => other !== panel);
    const place = others.findIndex((other) => this.charts.get(other).element === otherElement);
    this.#moveTo(panel, from, place + Number(isAfter));
  }

  #moveTo(panel, from, to) {
    const moved = movePanel(this.panels, from, to);
    const place = moved.indexOf(panel);
    if (place === from) this.#tell(`${titleOfPanel(panel)} is ${place ? "last" : "first"} already.`);
    else this.#act(moved, `${titleOfPanel(panel)} is now ${place + 1} of ${moved.length}.`);
  }

  /** Makes a change that needs no dialog: says what it was, or why it failed. */
  async #act(panels, sentence) {
    this.#tell(sentence);
    await this.#change(panels).catch((error) => this.#showError(error.message));
  }

  /** Shows the panels and stores them. After a failure shows the stored ones again and throws. */
  #change(panels) {
    this.#show(panels);
    // One request at a time; changes that come meanwhile are stored together by the next one.
    this.saving = (this.saving ?? Promise.resolve()).catch(() => {}).then(() => this.#save());
    return this.saving;
  }

  async #save() {
    const { panels } = this;
    if (panels === this.saved) return;
    try {
      this.revision = (await saveLayout(this.config.address, panels, this.revision)).revision;
      this.saved = panels;
    } catch (error) {
      if (error.status === CONFLICT) await this.#load();
      this.#show(this.saved);
      throw error;
    }
  }

  async #load() {
    const layout = await fetchJson(this.config.address, {}).catch(() => null);
    if (layout) [this.revision, this.saved] = [layout.revision, layout.panels];
  }

  #askReset() {
    const question = "Go back to the automatic layout?\nThe panels of this experiment are removed for everybody.";
    askConfirmation(question, "Remove the panels", () => {
      this.#act([], "The panels are removed.");
      this.part("add-panel").focus();
    });
  }

  /** Says what is done, to people who cannot see it. */
  #tell(sentence) {
    this.part("board-note").textContent = sentence;
    this.#showError("");
  }

  #showError(sentence) {
    this.part("board-error").textContent = sentence;
  }
}

// The curves of runs, on a run's page and on the compare page (templates/tracking/_curves.html):
//
//   data-config   the id of a JSON element: {runs: [{run, number, name, is_live, metrics: [{key, last, min, max, …}]}],
//                 groups: [{id, label, title}] if means of groups are drawn instead of runs}
//   data-listing  an address that answers as GET /api/v1/runs/{run}/metrics/ or /api/v1/compare/metrics/ does
//   data-series   an address that answers as …/series/ does; key=, axis=, from=, to=, pixels=, smoothing= are added
//   data-numbered shows the numbers of runs before their names
//   data-events   marks events of the first run; without it, those of all runs when the reader wants them
//
// A second JSON element, panels-config, has the panels that people arranged (panels/board.js).
//
// The state of the charts is in the page's address (address.js). A chart is fetched when it comes into view.

import { mount } from "../app.js";
import { loadPlotly } from "../charts/plotly.js";
import { fetchJson } from "../charts/series.js";
import { readState, writeState } from "./address.js";
import { Annotations } from "./annotations.js";
import { metricOfAxis } from "./axes.js";
import { CurveGrid } from "./curve-grid.js";
import { Controls } from "./controls.js";
import { RunUpdates } from "./run-updates.js";
import { foldState, matchingKeys, sortByGroup } from "./group.js";
import { CurveLoader } from "./curve-loader.js";
import { PanelBoard } from "./panels/board.js";
import { zoomSpan } from "./ranges.js";

const AVERAGE_AFTER_MS = 250; // fetches no average while the slider moves

class Curves {
  constructor(element) {
    this.element = element;
    loadPlotly(); // load it while the numbers are fetched
    const config = JSON.parse(document.getElementById(element.dataset.config).textContent);
    this.state = readState();
    this.runs = config.runs;
    this.groups = config.groups ?? null;
    this.annotations = new Annotations();
    this.grid = this.#makeGrid();
    this.loader = new CurveLoader(element.dataset.series, {
      viewOf: (chart) => ({ ...this.grid.viewOf(chart), ...(this.groups ? { smoothing: 0 } : {}) }),
      show: (chart, lines) => this.grid.showLines(chart, lines),
    });
    const panels = JSON.parse(document.getElementById("panels-config").textContent);
    this.board = new PanelBoard(element, panels, this.grid, () => sortByGroup(this.#listKeys()));
    this.controls = new Controls(element, (changes, options) => this.change(changes, options));
    this.updates = new RunUpdates({ added: (keys) => this.#handleAdded(keys), changed: () => this.reload() });
    this.onPopState = () => this.#restore();
    addEventListener("popstate", this.onPopState);
    this.#restore();
    this.#watchLiveRuns();
  }

  #makeGrid() {
    const subjects = this.groups?.map((group) => [group.id, group]) ?? this.#subjects();
    const on = {
      zoom: (axis, from, to) => this.#setSpan(axis, zoomSpan(axis, from, to)),
      zoomOut: (axis) => this.state.spans[axis] && this.#setSpan(axis, null),
      load: (charts) => this.loader.schedule(charts),
      widen: (chart, isWide) => this.#setWide(chart, isWide),
      fold: () => this.#saveFolds(),
      hide: (ids) =>
        this.change({
          hide: this.#addressNames()
            .filter(([id]) => ids.has(id))
            .map(([, name]) => name),
        }),
    };
    const canEdit = this.element.querySelector("[data-part=add-chart]");
    return new CurveGrid(this.element, subjects, on, canEdit && ((key) => this.#addPanel(key)));
  }

  /** Applies a change of the reader: shows it, writes it into the address, and fetches what it needs. */
  change(changes, { isStep = false } = {}) {
    const before = this.state;
    this.state = { ...before, ...changes };
    writeState(this.state, { isStep });
    this.#apply(before);
  }

  async reload() {
    // After a failure the next message or poll tries again.
    const answer = await fetchJson(this.element.dataset.listing, {}).catch(() => null);
    if (!answer) return;
    this.runs = answer.runs ?? [answer, ...answer.children];
    if (!this.groups) this.grid.legend.addSubjects(this.#subjects());
    this.#showKeys();
    this.#watchLiveRuns();
    if (this.#showsEvents()) this.#loadEvents();
  }

  close() {
    removeEventListener("popstate", this.onPopState);
    this.loader.close();
    clearTimeout(this.smoothingTimer);
    this.controls.close();
    this.updates.close();
    this.grid.close();
  }

  #subjects() {
    const isNumbered = "numbered" in this.element.dataset;
    return this.runs.map(({ run, number, name }) => [
      run,
      { label: isNumbered ? `${number} · ${name}` : name, title: `Run ${number}, ${name}` },
    ]);
  }

  /** Returns [id, name in the address] of each subject: the number of a run, or the position of a group. */
  #addressNames() {
    if (this.groups) return this.groups.map(({ id }, index) => [id, String(index + 1)]);
    return this.runs.map(({ run, number }) => [run, String(number)]);
  }

  /** Takes over the state from the address, at first and after the Back button. */
  #restore() {
    const before = this.state;
    this.state = readState();
    const hidden = new Set(this.state.hide);
    this.grid.legend.setHidden(
      this.#addressNames()
        .filter(([, name]) => hidden.has(name))
        .map(([id]) => id),
    );
    this.#apply(before);
    this.grid.updateLines();
  }

  #apply(before) {
    const { axis, smoothing, logx, logy, spans, events, q, keys } = this.state;
    this.controls.show({ ...this.state, events: this.#showsEvents() });
    if (!this.isListed || q !== before.q || String(keys) !== String(before.keys)) this.#showKeys();
    const spanName = (chart) => {
      const view = this.grid.viewOf(chart);
      return JSON.stringify([view.axis, view.from, view.to]);
    };
    const spansBefore = new Map(this.grid.panels.map((chart) => [chart, spanName(chart)]));
    this.grid.setView({ axis, smoothing, isLog: logx, isLogY: logy }, spans);
    if (!this.hasEvents || events !== before.events) this.#showEvents();
    this.loader.refetch(this.grid.panels.filter((chart) => spansBefore.get(chart) !== spanName(chart)));
    if (smoothing === before.smoothing) return;
    clearTimeout(this.smoothingTimer);
    this.smoothingTimer = setTimeout(
      () => this.state.smoothing && this.loader.refetch([...this.grid.charts.values()]),
      AVERAGE_AFTER_MS,
    );
  }

  #setSpan(axis, span) {
    const { [axis]: _, ...others } = this.state.spans;
    this.change({ spans: span ? { ...others, [axis]: span } : others }, { isStep: true });
  }

  #addPanel(key) {
    const { axis, smoothing, logx, logy } = this.state;
    this.board.add({ metrics: [key], x: axis, smoothing, log_x: logx, log_y: logy });
  }

  #showsEvents() {
    return this.state.events ?? "events" in this.element.dataset;
  }

  #showEvents() {
    this.hasEvents = true;
    const isShown = this.#showsEvents();
    this.grid.setEvents((axis) => (isShown ? this.annotations.eventsOn(axis) : []));
    if (isShown) this.#loadEvents();
  }

  /** On a run's page, only its own events are of interest, and not those of the runs that its processes opened. */
  async #loadEvents() {
    const isNew = await this.annotations.load("events" in this.element.dataset ? this.runs.slice(0, 1) : this.runs);
    if (isNew) this.grid.draw();
  }

  #listKeys() {
    return new Set(this.runs.flatMap(({ metrics }) => metrics.map(({ key }) => key)));
  }

  #showKeys() {
    this.allKeys = this.#listKeys();
    const keys = matchingKeys(this.allKeys, this.state);
    this.isListed = true;
    this.grid.setKeys(keys, this.state);
    for (const { run, metrics } of this.runs) {
      for (const metric of metrics) {
        this.grid.charts.get(metric.key)?.setSummary(run, metric);
        for (const chart of this.grid.arranged) if (chart.keys.includes(metric.key)) chart.setSummary(run, metric);
      }
    }
    for (const chart of this.grid.panels) chart.showReadout();
    const total = this.allKeys.size;
    this.element.classList.toggle("cv-empty", total === 0);
    this.element.querySelector("[data-part=note]").textContent =
      keys.length || !total ? "" : "No metric name matches the filter.";
    const all = `${total} metric${total === 1 ? "" : "s"}`;
    this.element.querySelector("[data-part=count]").textContent =
      keys.length === total ? all : `${keys.length} of ${all}`;
  }

  #watchLiveRuns() {
    this.updates.setRuns(this.runs.filter(({ is_live }) => is_live).map(({ run }) => run));
  }

  #handleAdded(keys) {
    if (keys === null || keys.some((key) => !this.allKeys.has(key))) this.reload();
    const isAdded = (key) => keys === null || keys.includes(key);
    const needs = (chart) => [...chart.keys, metricOfAxis(this.grid.viewOf(chart).axis)].some(isAdded);
    this.loader.refetch(this.grid.panels.filter(needs));
  }

  #setWide(chart, isWide) {
    const others = this.state.wide.filter((key) => key !== chart.key);
    this.change({ wide: isWide ? [...others, chart.key] : others });
    this.loader.refetch([chart]);
  }

  #saveFolds() {
    const groups = [...this.grid.groups.values()];
    const shown = groups.map(({ name, isOpenByDefault, element }) => ({ name, isOpenByDefault, isOpen: element.open }));
    this.change(foldState(shown, this.state));
  }
}

mount("curves", (element) => {
  const curves = new Curves(element);
  return () => curves.close();
});

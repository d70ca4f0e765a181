// The curves of runs, on a run's page and on the compare page (templates/tracking/_curves.html):
//
//   data-config   the id of a JSON element: {runs: [{run, number, name, is_live, metrics: [{key, last, min, max, …}]}],
//                 groups: [{id, label, title}] if means of groups are drawn instead of runs}
//   data-listing  an address that answers as GET /api/v1/runs/{run}/metrics/ or /api/v1/compare/metrics/ does
//   data-series   an address that answers as …/series/ does; key=, axis=, from=, to=, pixels=, smoothing= are added
//   data-numbered shows the numbers of runs before their names
//
// The state of the charts is in the page's address (address.js). A chart is fetched when it comes into view.

import { mount } from "../app.js";
import { MARGIN } from "../charts/panel.js";
import { loadPlotly } from "../charts/plotly.js";
import { fetchJson } from "../charts/series.js";
import { readState, writeState } from "./address.js";
import { CurveGrid } from "./curve-grid.js";
import { Controls } from "./controls.js";
import { RunUpdates } from "./run-updates.js";
import { foldState, matchingKeys } from "./group.js";
import { CurveLine } from "./line.js";
import { zoomSpan } from "./ranges.js";

const BATCH_MS = 20; // charts that come into view within this time are fetched together
const AVERAGE_AFTER_MS = 250; // fetches no average while the slider moves
const MAX_BATCH = 24;
const [MIN_PX, MAX_PX] = [200, 2000];

class Curves {
  constructor(element) {
    this.element = element;
    loadPlotly(); // load it while the numbers are fetched
    const config = JSON.parse(document.getElementById(element.dataset.config).textContent);
    this.state = readState();
    this.runs = config.runs;
    this.groups = config.groups ?? null;
    this.grid = new CurveGrid(element, this.groups?.map((group) => [group.id, group]) ?? this.#subjects(), {
      zoom: (from, to) => this.change(zoomSpan(this.state.axis, from, to), { isStep: true }),
      zoomOut: () => this.state.from === null || this.change({ from: null, to: null }, { isStep: true }),
      load: (charts) => this.#scheduleLoad(charts),
      widen: (chart, isWide) => this.#setWide(chart, isWide),
      fold: () => this.#saveFolds(),
      hide: (ids) =>
        this.change({
          hide: this.#addressNames()
            .filter(([id]) => ids.has(id))
            .map(([, name]) => name),
        }),
    });
    this.controls = new Controls(element, (changes, options) => this.change(changes, options));
    this.updates = new RunUpdates({ added: (keys) => this.#handleAdded(keys), changed: () => this.reload() });
    this.onPopState = () => this.#restore();
    addEventListener("popstate", this.onPopState);
    this.#restore();
    this.#watchLiveRuns();
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
  }

  close() {
    removeEventListener("popstate", this.onPopState);
    clearTimeout(this.loadTimer);
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
    const { axis, smoothing, logx, logy, from, to, q, keys } = this.state;
    this.controls.show(this.state);
    if (!this.isListed || q !== before.q || String(keys) !== String(before.keys)) this.#showKeys();
    this.grid.setView({ axis, smoothing, isLog: logx, isLogY: logy, from, to });
    if (axis !== before.axis || from !== before.from || to !== before.to) this.#refetch(this.grid.panels);
    else if (smoothing !== before.smoothing) {
      clearTimeout(this.smoothingTimer);
      this.smoothingTimer = setTimeout(() => this.state.smoothing && this.#refetch(this.grid.panels), AVERAGE_AFTER_MS);
    }
  }

  #showKeys() {
    this.allKeys = new Set(this.runs.flatMap(({ metrics }) => metrics.map(({ key }) => key)));
    const keys = matchingKeys(this.allKeys, this.state);
    this.isListed = true;
    this.grid.setKeys(keys, this.state);
    for (const { run, metrics } of this.runs) {
      for (const metric of metrics) this.grid.charts.get(metric.key)?.summaries.set(run, metric);
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
    const charts = keys === null ? this.grid.panels : keys.map((key) => this.grid.charts.get(key)).filter(Boolean);
    this.#refetch(charts);
  }

  /** Fetches the charts in view again now, and the others when they come into view. */
  #refetch(charts) {
    for (const chart of charts) chart.isRequested = false;
    this.#scheduleLoad(charts.filter((chart) => chart.isInView));
  }

  #scheduleLoad(charts) {
    for (const chart of charts) {
      chart.isRequested = true;
      (this.pending ??= new Set()).add(chart);
    }
    this.loadTimer ??= setTimeout(() => {
      this.loadTimer = null;
      const pending = [...(this.pending ?? [])];
      this.pending = null;
      const wide = pending.filter((chart) => chart.element.classList.contains("cv-wide"));
      for (const batch of [wide, pending.filter((chart) => !wide.includes(chart))]) {
        for (let at = 0; at < batch.length; at += MAX_BATCH) this.#fetch(batch.slice(at, at + MAX_BATCH));
      }
    }, BATCH_MS);
  }

  async #fetch(charts) {
    const request = {};
    for (const chart of charts) chart.request = request;
    const { axis, smoothing, from, to } = this.state;
    const width = (charts[0].plot.clientWidth || MIN_PX) - MARGIN.l - MARGIN.r;
    const pixels = Math.round(Math.min(MAX_PX, Math.max(MIN_PX, width)));
    const query = {
      key: charts.map(({ key }) => key),
      axis,
      pixels,
      from,
      to,
      smoothing: smoothing && !this.groups ? smoothing : null,
    };
    try {
      const answer = await fetchJson(this.element.dataset.series, query);
      const linesByKey = new Map(charts.map((chart) => [chart.key, []]));
      for (const line of answer.lines ?? answer.bands) {
        linesByKey
          .get(line.key)
          ?.push(new CurveLine({ ...line, weight: smoothing }, line.run ?? `group:${line.group}`));
      }
      for (const chart of charts) {
        // A newer request for this chart is under way.
        if (chart.request !== request) continue;
        for (const line of linesByKey.get(chart.key)) if (line.answer.run) chart.summaries.set(line.id, line.answer);
        this.grid.showLines(chart, linesByKey.get(chart.key));
      }
    } catch (error) {
      for (const chart of charts) if (chart.request === request) chart.note.textContent = error.message;
    }
  }

  #setWide(chart, isWide) {
    const others = this.state.wide.filter((key) => key !== chart.key);
    this.change({ wide: isWide ? [...others, chart.key] : others });
    this.#refetch([chart]);
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

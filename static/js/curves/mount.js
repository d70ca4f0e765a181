// Curves of runs, on a run's page and where runs are compared (templates/tracking/_curves.html):
//
//   data-config   the id of a JSON element: {runs: [{run, number, name, is_live, metrics: [{key, last, min, max, …}]}],
//                 groups: [{id, label, title}] where means of groups are drawn instead of runs}
//   data-listing  answers as GET /api/v1/runs/{run}/metrics/ or /api/v1/compare/metrics/ does
//   data-series   answers as …/series/ does; key=, axis=, from=, to=, pixels=, smoothing= are added
//   data-numbered runs are named with their numbers
//
// What is shown, and how, is in the page's address (address.js). A chart is fetched when it comes into view.

import { mount } from "../app.js";
import { MARGIN } from "../charts/panel.js";
import { plotly } from "../charts/plotly.js";
import { load } from "../charts/series.js";
import { read, write } from "./address.js";
import { Board } from "./board.js";
import { Controls } from "./controls.js";
import { Following } from "./following.js";
import { byGroup } from "./group.js";
import { Line } from "./line.js";

const TOGETHER_MS = 20; // charts that come into view together are asked for together
const EXACT_AFTER_MS = 250; // while the slider moves
const MOST_TOGETHER = 24;
const [LEAST_PX, MOST_PX] = [200, 2000];

class Curves {
  constructor(element) {
    this.element = element;
    plotly(); // is on its way while the numbers are
    const config = JSON.parse(document.getElementById(element.dataset.config).textContent);
    this.state = read();
    this.runs = config.runs;
    this.groups = config.groups ?? null;
    this.board = new Board(element, this.groups?.map((group) => [group.id, group]) ?? this.#subjects(), {
      zoom: (from, to) => this.change(this.#span(from, to), { isStep: true }),
      zoomOut: () => this.state.from === null || this.change({ from: null, to: null }, { isStep: true }),
      needed: (charts) => this.#need(charts),
      widened: (chart, isWide) => this.#widened(chart, isWide),
      folded: () => this.#folded(),
      hidden: (ids) => this.change({ hide: this.#named().filter(([id]) => ids.has(id)).map(([, name]) => name) }),
    });
    this.controls = new Controls(element, (changes, options) => this.change(changes, options));
    this.following = new Following({ added: (keys) => this.#added(keys), changed: () => this.relist() });
    this.onBack = () => this.#restore();
    addEventListener("popstate", this.onBack);
    this.#restore();
    this.#follow();
  }

  /** Somebody has chosen something: shown, written into the address, and fetched where that needs it. */
  change(changes, { isStep = false } = {}) {
    const before = this.state;
    this.state = { ...before, ...changes };
    write(this.state, { isStep });
    this.#apply(before);
  }

  async relist() {
    const answer = await load(this.element.dataset.listing, {}).catch(() => null); // the next one will tell
    if (!answer) return;
    this.runs = answer.runs ?? [answer, ...answer.children];
    if (!this.groups) this.board.legend.list(this.#subjects());
    this.#list();
    this.#follow();
  }

  close() {
    removeEventListener("popstate", this.onBack);
    clearTimeout(this.soon);
    clearTimeout(this.later);
    this.controls.close();
    this.following.close();
    this.board.close();
  }

  #subjects() {
    const isNumbered = "numbered" in this.element.dataset;
    return this.runs.map(({ run, number, name }) => [run, { label: isNumbered ? `${number} · ${name}` : name, title: `Run ${number}, ${name}` }]);
  }

  /** [id, what the address calls it]: a run's number, or which of the groups it is. */
  #named() {
    if (this.groups) return this.groups.map(({ id }, place) => [id, String(place + 1)]);
    return this.runs.map(({ run, number }) => [run, String(number)]);
  }

  /** From the address, as a link or the way back has it. */
  #restore() {
    const before = this.state;
    this.state = read();
    const hidden = new Set(this.state.hide);
    this.board.legend.hide(this.#named().filter(([, name]) => hidden.has(name)).map(([id]) => id));
    this.#apply(before);
    this.board.choose();
  }

  #apply(before) {
    const { axis, smoothing, logx, logy, from, to, q, keys } = this.state;
    this.controls.show(this.state);
    if (!this.listed || q !== before.q || String(keys) !== String(before.keys)) this.#list();
    this.board.setView({ axis, smoothing, isLog: logx, isLogY: logy, from, to });
    if (axis !== before.axis || from !== before.from || to !== before.to) this.#refetch(this.board.panels);
    else if (smoothing !== before.smoothing) {
      clearTimeout(this.later);
      this.later = setTimeout(() => this.state.smoothing && this.#refetch(this.board.panels), EXACT_AFTER_MS);
    }
  }

  #list() {
    const known = new Set(this.runs.flatMap(({ metrics }) => metrics.map(({ key }) => key)));
    const { q, keys } = this.state;
    const words = q.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = byGroup(known).filter((key) => words.every((word) => key.toLowerCase().includes(word)) && (!keys.length || keys.includes(key)));
    this.known = known;
    this.listed = true;
    this.board.list(shown, this.state);
    for (const { run, metrics } of this.runs) {
      for (const metric of metrics) this.board.charts.get(metric.key)?.facts.set(run, metric);
    }
    for (const chart of this.board.panels) chart.tell();
    this.element.classList.toggle("cv-empty", known.size === 0);
    const none = shown.length || !known.size ? "" : `None of the ${known.size} metrics is called like that.`;
    this.element.querySelector("[data-part=note]").textContent = none;
    const many = `${known.size} metric${known.size === 1 ? "" : "s"}`;
    this.element.querySelector("[data-part=count]").textContent = shown.length === known.size ? many : `${shown.length} of ${many}`;
  }

  #follow() {
    this.following.set(this.runs.filter(({ is_live }) => is_live).map(({ run }) => run));
  }

  #added(keys) {
    if (keys === null || keys.some((key) => !this.known.has(key))) this.relist();
    const charts = keys === null ? this.board.panels : keys.map((key) => this.board.charts.get(key)).filter(Boolean);
    this.#refetch(charts);
  }

  /** What is in view now; the others when they come into view. */
  #refetch(charts) {
    for (const chart of charts) chart.isAsked = false;
    this.#need(charts.filter((chart) => chart.isInView));
  }

  #need(charts) {
    for (const chart of charts) {
      chart.isAsked = true;
      (this.due ??= new Set()).add(chart);
    }
    this.soon ??= setTimeout(() => {
      this.soon = null;
      const due = [...(this.due ?? [])];
      this.due = null;
      const wide = due.filter((chart) => chart.element.classList.contains("cv-wide"));
      for (const some of [wide, due.filter((chart) => !wide.includes(chart))]) {
        for (let at = 0; at < some.length; at += MOST_TOGETHER) this.#fetch(some.slice(at, at + MOST_TOGETHER));
      }
    }, TOGETHER_MS);
  }

  async #fetch(charts) {
    const turn = {};
    for (const chart of charts) chart.turn = turn;
    const { axis, smoothing, from, to } = this.state;
    const width = (charts[0].plot.clientWidth || LEAST_PX) - MARGIN.l - MARGIN.r;
    const pixels = Math.round(Math.min(MOST_PX, Math.max(LEAST_PX, width)));
    const query = { key: charts.map(({ key }) => key), axis, pixels, from, to, smoothing: smoothing && !this.groups ? smoothing : null };
    try {
      const answer = await load(this.element.dataset.series, query);
      const found = new Map(charts.map((chart) => [chart.key, []]));
      for (const told of answer.lines ?? answer.bands) {
        found.get(told.key)?.push(new Line({ ...told, weight: smoothing }, told.run ?? `group:${told.group}`));
      }
      for (const chart of charts) {
        // Somebody has asked for something else meanwhile, which will come.
        if (chart.turn !== turn) continue;
        for (const line of found.get(chart.key)) if (line.told.run) chart.facts.set(line.id, line.told);
        this.board.show(chart, found.get(chart.key));
      }
    } catch (error) {
      for (const chart of charts) if (chart.turn === turn) chart.note.textContent = error.message;
    }
  }

  #span(from, to) {
    if (this.state.axis !== "step") return { from: Number(from.toFixed(3)), to: Number(to.toFixed(3)) };
    const [low, high] = [Math.floor(from), Math.ceil(to)];
    return { from: low, to: Math.max(high, low + 1) };
  }

  #widened(chart, isWide) {
    const others = this.state.wide.filter((key) => key !== chart.key);
    this.change({ wide: isWide ? [...others, chart.key] : others });
    this.#refetch([chart]);
  }

  #folded() {
    const groups = [...this.board.groups.values()];
    const names = (list) => list.map(({ name }) => name);
    this.change({
      closed: names(groups.filter((group) => group.isUsuallyOpen && !group.element.open)),
      opened: names(groups.filter((group) => !group.isUsuallyOpen && group.element.open)),
    });
  }
}

mount("curves", (element) => {
  const curves = new Curves(element);
  return () => curves.close();
});

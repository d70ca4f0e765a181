// Fetches the curves of charts: those that have the same axis, span and width together in one request.

import { MARGIN } from "../charts/panel.js";
import { fetchJson } from "../charts/series.js";
import { CurveLine } from "./line.js";

const BATCH_MS = 20; // charts that come into view within this time are fetched together
const MAX_KEYS = 24; // of one request
const [MIN_PX, MAX_PX] = [200, 2000];

export class CurveLoader {
  /** `viewOf(chart)` returns {axis, smoothing, from, to}; `show(chart, lines)` takes the lines. */
  constructor(address, { viewOf, show }) {
    Object.assign(this, { address, viewOf, show, pending: new Set() });
  }

  /** Fetches the charts in view again now; the others when they come into view. */
  refetch(charts) {
    for (const chart of charts) chart.isRequested = false;
    this.schedule(charts.filter((chart) => chart.isInView));
  }

  schedule(charts) {
    for (const chart of charts) {
      chart.isRequested = true;
      this.pending.add(chart);
    }
    this.timer ??= setTimeout(() => {
      this.timer = null;
      const batches = batchesOf([...this.pending], (chart) => this.#queryOf(chart));
      this.pending.clear();
      for (const { query, charts: batch } of batches) this.#fetch(query, batch);
    }, BATCH_MS);
  }

  close() {
    clearTimeout(this.timer);
  }

  #queryOf(chart) {
    const { axis, smoothing, from, to } = this.viewOf(chart);
    const width = (chart.plot.clientWidth || MIN_PX) - MARGIN.l - MARGIN.r;
    const pixels = Math.round(Math.min(MAX_PX, Math.max(MIN_PX, width)));
    return { axis, pixels, from, to, smoothing: smoothing || null };
  }

  async #fetch(query, charts) {
    const request = {};
    for (const chart of charts) chart.request = request;
    const current = () => charts.filter((chart) => chart.request === request); // the others have a newer request
    try {
      const key = [...new Set(charts.flatMap(({ keys }) => keys))];
      const answer = await fetchJson(this.address, { key, ...query });
      for (const chart of current()) {
        const lines = (answer.lines ?? answer.bands).filter((line) => chart.keys.includes(line.key));
        for (const line of lines) if (line.run) chart.setSummary(line.run, line);
        // Each chart has lines of its own, because their colours may differ.
        this.show(
          chart,
          lines.map((line) => makeLine(line, query.smoothing ?? 0)),
        );
      }
    } catch (error) {
      for (const chart of current()) chart.note.textContent = error.message;
    }
  }
}

function makeLine(line, weight) {
  return new CurveLine({ ...line, weight }, line.run ?? `group:${line.group}`);
}

/** Returns [{query, charts}]: charts with the same query together, with a limited number of metrics. */
export function batchesOf(charts, queryOf) {
  const batches = [];
  for (const chart of charts) {
    const query = queryOf(chart);
    const name = JSON.stringify(query);
    let batch = batches.findLast((other) => other.name === name);
    if (!batch || batch.keys + chart.keys.length > MAX_KEYS) {
      batch = { name, query, charts: [], keys: 0 };
      batches.push(batch);
    }
    batch.charts.push(chart);
    batch.keys += chart.keys.length;
  }
  return batches;
}

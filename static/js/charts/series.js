// The answer of /api/v1/…/series/ as columns that charts draw, to which live samples are appended.
//
// Times are Unix seconds. A value is a number or null: unknown, a gap in the line. All rows of a Series share `times`.

export const HOST = "";

/** Fetches JSON. Throws an Error with the hub's sentence if it refuses. A list in `query` repeats that parameter. */
export async function fetchJson(address, query, signal) {
  const url = new URL(address, location.href);
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) for (const item of value) url.searchParams.append(name, item);
    else if (value !== null && value !== undefined) url.searchParams.set(name, value);
  }
  const response = await fetch(url, { signal, headers: { Accept: "application/json" } });
  if (response.ok) return response.json();
  const problem = await response.json().catch(() => ({}));
  throw new Error(problem.detail ?? `The hub answered ${response.status}. Reload the page.`);
}

/** Returns a Series for each node in the answer about a node, a GPU or a run. */
export function seriesFromAnswer(answer) {
  return (answer.nodes ?? [answer]).map((node) => new Series(node, node.step_s ?? answer.step_s));
}

export class Series {
  /** `answer`: one node of it, whose lists are used and changed. `step`: the seconds between two times. */
  constructor(answer, step) {
    this.node = answer.node;
    this.step = step;
    this.bin = step;
    this.times = answer.times;
    this.gpus = answer.gpus.map(({ uuid, index, name }) => ({ uuid, index, name }));
    this.rows = new Map([[HOST, rowsFromAnswer(answer.host ?? {})]]);
    for (const gpu of answer.gpus) this.rows.set(gpu.uuid, rowsFromAnswer(gpu.series));
    this.#trim();
  }

  /** Returns {mean, max} of a metric, or undefined. `subject`: a GPU's UUID or HOST. */
  row(subject, metric) {
    return this.rows.get(subject)?.get(metric);
  }

  has(subject, metric) {
    return this.row(subject, metric)?.mean.some((value) => value !== null) ?? false;
  }

  /** Returns the index of the time nearest to `at`, or -1 if there is none within one and a half steps. */
  nearestIndex(at) {
    let [low, high] = [0, this.times.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] < at) low = middle + 1;
      else high = middle;
    }
    const nearest =
      low > 0 && (low === this.times.length || at - this.times[low - 1] < this.times[low] - at) ? low - 1 : low;
    return Math.abs(this.times[nearest] - at) <= 1.5 * Math.max(this.step, this.bin) ? nearest : -1;
  }

  /**
   * Appends the samples of a telemetry message in bins of `bin` seconds. Samples within the history are ignored, and so
   * are metrics that are not in `metricsByScope`: {host: Set, gpu: Set}.
   */
  append(message, bin, metricsByScope) {
    this.bin = Math.max(bin, message.step_s);
    const { host, gpus } = message;
    const steps = host?.values.length ?? gpus?.values.length ?? 0;
    for (let step = 0; step < steps; step += 1) {
      const at = message.start + step * message.step_s;
      if (!this.#openBin(at)) continue;
      if (host) this.#addSample(HOST, host.metrics, host.values[step], metricsByScope.host);
      gpus?.subjects.forEach((subject, index) =>
        this.#addSample(subject, gpus.metrics, gpus.values[step][index], metricsByScope.gpu),
      );
    }
  }

  /** Drops the times before `from`, once they are a tenth of all. */
  dropBefore(from) {
    const count = this.times.findIndex((at) => at >= from);
    if (count < this.times.length * 0.1) return;
    this.times.splice(0, count);
    this.#forEachRow((row) => {
      row.mean.splice(0, count);
      row.max.splice(0, count);
    });
  }

  /**
   * Makes the bin of `at` the last one. Returns false if it lies before the end of the history or of an earlier bin.
   */
  #openBin(at) {
    const bin = Math.floor(at / this.bin) * this.bin;
    const last = this.times.at(-1) ?? -Infinity;
    if (bin === this.liveBin) return true;
    // The last bucket of the history covers `step` seconds from its time on.
    if (bin < last + (this.liveBin === undefined ? this.step : this.bin)) return false;
    if (bin - last > 2 * Math.max(this.bin, this.liveBin === undefined ? this.step : this.bin))
      this.#appendTime(last + this.bin);
    this.#appendTime(bin);
    this.liveBin = bin;
    return true;
  }

  #appendTime(at) {
    if (!Number.isFinite(at)) return;
    this.times.push(at);
    this.#forEachRow((row) => {
      row.mean.push(null);
      row.max.push(null);
      row.count = 0;
    });
  }

  #addSample(subject, metrics, values, accepted) {
    if (!this.rows.has(subject)) {
      if (!this.gpus.some((gpu) => gpu.uuid === subject)) return;
      this.rows.set(subject, new Map());
    }
    const rows = this.rows.get(subject);
    metrics.forEach((metric, index) => {
      const value = values[index];
      if (value === null || !accepted.has(metric)) return;
      if (!rows.has(metric)) rows.set(metric, emptyRow(this.times.length));
      const row = rows.get(metric);
      const last = this.times.length - 1;
      row.count += 1;
      row.mean[last] = (row.mean[last] ?? 0) + (value - (row.mean[last] ?? 0)) / row.count;
      row.max[last] = row.max[last] === null ? value : Math.max(row.max[last], value);
    });
  }

  #forEachRow(callback) {
    for (const rows of this.rows.values()) for (const row of rows.values()) callback(row);
  }

  /** Drops the newest times without any value: live samples will fill them. */
  #trim() {
    let end = this.times.length;
    const rows = [...this.rows.values()].flatMap((metrics) => [...metrics.values()]);
    while (end > 0 && rows.every((row) => row.mean[end - 1] === null)) end -= 1;
    this.times.length = end;
    for (const row of rows) row.mean.length = row.max.length = end;
  }
}

function rowsFromAnswer(series) {
  return new Map(Object.entries(series).map(([metric, { mean, max }]) => [metric, { mean, max, count: 0 }]));
}

function emptyRow(length) {
  return { mean: Array(length).fill(null), max: Array(length).fill(null), count: 0 };
}

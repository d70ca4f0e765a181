// The answer of /api/v1/…/series/ as columns that charts draw from, and live samples appended to their right end.
//
// Times are Unix seconds, a value is a number or null (not known: a gap). All rows of one Series share `times`.

export const HOST = "";

/** Fetches; throws an Error whose message is the hub's own sentence. A list in the query is that parameter given often. */
export async function load(address, query, signal) {
  const url = new URL(address, location.href);
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) for (const item of value) url.searchParams.append(name, item);
    else if (value !== null && value !== undefined) url.searchParams.set(name, value);
  }
  const answer = await fetch(url, { signal, headers: { Accept: "application/json" } });
  if (answer.ok) return answer.json();
  const told = await answer.json().catch(() => ({}));
  throw new Error(told.detail ?? `The hub answered ${answer.status}; reload the page.`);
}

/** One Series per node, from the answer about a node, a GPU or a run. */
export function seriesOf(answer) {
  return (answer.nodes ?? [answer]).map((node) => new Series(node, node.step_s ?? answer.step_s));
}

export class Series {
  /** Takes the answer's own lists: it is made of nothing else. */
  constructor(answer, step) {
    this.node = answer.node;
    this.step = step;
    this.bin = step;
    this.times = answer.times;
    this.gpus = answer.gpus.map(({ uuid, index, name }) => ({ uuid, index, name }));
    this.rows = new Map([[HOST, rowsOf(answer.host ?? {})]]);
    for (const gpu of answer.gpus) this.rows.set(gpu.uuid, rowsOf(gpu.series));
    this.#trim();
  }

  /** {mean, max} of a metric, or undefined. `subject`: a GPU's UUID or HOST. */
  row(subject, metric) {
    return this.rows.get(subject)?.get(metric);
  }

  has(subject, metric) {
    return this.row(subject, metric)?.mean.some((value) => value !== null) ?? false;
  }

  /** The place of the time nearest to `at`, or -1 where there is none within a step or two. */
  nearest(at) {
    let [low, high] = [0, this.times.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] < at) low = middle + 1;
      else high = middle;
    }
    const best = low > 0 && (low === this.times.length || at - this.times[low - 1] < this.times[low] - at) ? low - 1 : low;
    return Math.abs(this.times[best] - at) <= 1.5 * Math.max(this.step, this.bin) ? best : -1;
  }

  /** Samples of the socket's message, in bins of `bin` seconds; what history already tells is left alone. */
  append(message, bin, wanted) {
    this.bin = Math.max(bin, message.step_s);
    const { host, gpus } = message;
    const steps = host?.values.length ?? gpus?.values.length ?? 0;
    for (let step = 0; step < steps; step += 1) {
      const at = message.start + step * message.step_s;
      if (!this.#open(at)) continue;
      if (host) this.#put(HOST, host.metrics, host.values[step], wanted.host);
      gpus?.subjects.forEach((subject, place) => this.#put(subject, gpus.metrics, gpus.values[step][place], wanted.gpu));
    }
  }

  /** Forgets what lies left of `from`. */
  forget(from) {
    const gone = this.times.findIndex((at) => at >= from);
    if (gone < this.times.length * 0.1) return;
    this.times.splice(0, gone);
    this.#each((row) => {
      row.mean.splice(0, gone);
      row.max.splice(0, gone);
    });
  }

  /** Makes the bin of `at` the last one; false where it lies in what is settled already. */
  #open(at) {
    const bin = Math.floor(at / this.bin) * this.bin;
    const last = this.times.at(-1) ?? -Infinity;
    if (bin === this.live) return true;
    // History's last bucket reaches `step` seconds beyond its own time.
    if (bin < last + (this.live === undefined ? this.step : this.bin)) return false;
    if (bin - last > 2 * Math.max(this.bin, this.live === undefined ? this.step : this.bin)) this.#push(last + this.bin);
    this.#push(bin);
    this.live = bin;
    return true;
  }

  #push(at) {
    if (!Number.isFinite(at)) return;
    this.times.push(at);
    this.#each((row) => {
      row.mean.push(null);
      row.max.push(null);
      row.count = 0;
    });
  }

  #put(subject, metrics, values, wanted) {
    if (!this.rows.has(subject)) {
      if (!this.gpus.some((gpu) => gpu.uuid === subject)) return;
      this.rows.set(subject, new Map());
    }
    const rows = this.rows.get(subject);
    metrics.forEach((metric, place) => {
      const value = values[place];
      if (value === null || !wanted.has(metric)) return;
      if (!rows.has(metric)) rows.set(metric, emptyRow(this.times.length));
      const row = rows.get(metric);
      const last = this.times.length - 1;
      row.count += 1;
      row.mean[last] = (row.mean[last] ?? 0) + (value - (row.mean[last] ?? 0)) / row.count;
      row.max[last] = row.max[last] === null ? value : Math.max(row.max[last], value);
    });
  }

  #each(act) {
    for (const rows of this.rows.values()) for (const row of rows.values()) act(row);
  }

  /** Nothing is known yet of the newest steps: live samples fill them. */
  #trim() {
    let end = this.times.length;
    const rows = [...this.rows.values()].flatMap((found) => [...found.values()]);
    while (end > 0 && rows.every((row) => row.mean[end - 1] === null)) end -= 1;
    this.times.length = end;
    for (const row of rows) row.mean.length = row.max.length = end;
  }
}

function rowsOf(told) {
  return new Map(Object.entries(told).map(([metric, { mean, max }]) => [metric, { mean, max, count: 0 }]));
}

function emptyRow(length) {
  return { mean: Array(length).fill(null), max: Array(length).fill(null), count: 0 };
}

// Brings the bytes of one log in order. The first load, live messages and reconnects share one rule: fetch from the end
// of what is here.

const REQUEST_BYTES = 4 * 1024 * 1024;
const CHUNK_BYTES = 256 * 1024;
const SLICE_MS = 10;
const SILENT_AFTER_MS = 10_000;
const STALLED_AFTER_MS = 15_000; // a server that hangs holds a request until the proxy gives it up, mostly minutes

export class LogFeed {
  /**
   * `url`: the log's address without query; `lines`: the LogLines to fill; `attempt`: the number of the attempt.
   * `onBytes()` is called after each chunk, `onState({size, complete, error})` after each fetch. A request that brings
   * nothing for `stalledMs` is given up and sent again.
   */
  constructor({ url, attempt, lines, onBytes, onState, stalledMs = STALLED_AFTER_MS }) {
    Object.assign(this, { url, attempt, lines, onBytes, onState, stalledMs });
    this.size = lines.end; // bytes that the hub has, as far as this page knows
    this.isComplete = false;
    this.isFetching = false;
    this.abort = new AbortController();
    this.lastMessageAt = Date.now();
    this.failures = 0;
    this.pollTimer = setInterval(() => this.poll(), SILENT_AFTER_MS / 2);
  }

  stop() {
    this.abort.abort();
    clearInterval(this.pollTimer);
    clearTimeout(this.retry);
  }

  /**
   * Handles a `log.appended` of this log: appends its bytes if they continue the log, otherwise fetches what is
   * missing.
   */
  receive({ offset, size, data }) {
    this.lastMessageAt = Date.now();
    const end = offset + size;
    if (end <= this.lines.end) return;
    if (data && !this.isFetching && offset <= this.lines.end) {
      this.lines.append(decodeBase64(data).subarray(this.lines.end - offset));
      this.handleGrowth(end);
    } else {
      this.size = Math.max(this.size, end);
      this.fetch();
    }
  }

  /** Fetches until everything that the hub has is here. */
  async fetch() {
    if (this.isFetching) return;
    this.isFetching = true;
    try {
      do await this.fetchRange();
      while (this.lines.end < this.size);
      this.failures = 0;
      this.reportState("");
    } catch (error) {
      if (this.abort.signal.aborted) return;
      this.failures += 1;
      this.reportState(`The log could not be fetched: ${error.message.replace(/\.$/, "")}. Trying again.`);
      this.retry = setTimeout(() => this.fetch(), Math.min(500 * 2 ** this.failures, 15_000));
    } finally {
      this.isFetching = false;
    }
  }

  async fetchRange() {
    const query = new URLSearchParams({ offset: this.lines.end, limit: REQUEST_BYTES, attempt: this.attempt });
    const watch = new StallWatch(this.abort.signal, this.stalledMs);
    try {
      const response = await fetch(`${this.url}?${query}`, { signal: watch.signal, cache: "no-store" });
      if (response.status === 404) return void (this.size = this.lines.end); // nothing written yet
      if (!response.ok) throw new Error(await reasonOf(response));
      this.size = Math.max(this.size, Number(response.headers.get("X-Log-Size")));
      this.isComplete = response.headers.get("X-Log-Complete") === "true";
      const before = this.lines.end;
      await this.appendStream(response.body.getReader(), watch);
      if (this.lines.end === before) this.size = before; // an empty answer: do not ask forever
    } finally {
      watch.end();
    }
  }

  async appendStream(reader, watch) {
    let sliceStart = performance.now();
    for (;;) {
      const { done: isDone, value } = await reader.read();
      if (isDone) return;
      watch.restart();
      for (let start = 0; start < value.length; start += CHUNK_BYTES) {
        this.lines.append(value.subarray(start, start + CHUNK_BYTES));
        this.handleGrowth(this.size);
        if (performance.now() - sliceStart < SLICE_MS) continue;
        await new Promise((resume) => setTimeout(resume)); // lets the page paint and scroll
        sliceStart = performance.now();
      }
    }
  }

  handleGrowth(size) {
    this.lastMessageAt = Date.now();
    this.size = Math.max(this.size, size);
    this.onBytes();
  }

  reportState(error) {
    this.onState({ size: this.size, complete: this.isComplete, error });
  }

  /** Asks the hub once after a long silence, in case the socket lost a message. */
  poll() {
    if (this.isComplete || document.hidden || Date.now() - this.lastMessageAt < SILENT_AFTER_MS) return;
    this.lastMessageAt = Date.now();
    this.fetch();
  }
}

/** Why the hub refused, such as an object store that is away; a proxy answers no JSON. */
async function reasonOf(response) {
  const problem = await response.json().catch(() => ({}));
  return problem.detail ?? `${response.status} ${response.statusText}`;
}

/** Aborts `signal` when `outer` is aborted, or when nobody has called `restart` for `stalledMs`. */
class StallWatch {
  constructor(outer, stalledMs) {
    this.controller = new AbortController();
    this.signal = this.controller.signal;
    this.outer = outer;
    this.stalledMs = stalledMs;
    this.stop = () => this.controller.abort();
    outer.addEventListener("abort", this.stop);
    this.restart();
  }

  restart() {
    clearTimeout(this.timer);
    this.timer = setTimeout(
      () => this.controller.abort(new Error(`no answer for ${this.stalledMs / 1000} s`)),
      this.stalledMs,
    );
  }

  end() {
    clearTimeout(this.timer);
    this.outer.removeEventListener("abort", this.stop);
  }
}

export function decodeBase64(base64) {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

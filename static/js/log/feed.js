// Brings the bytes of one log in order: replay, live and reconnect are one path, "fetch from what I have".

const AT_ONCE_BYTES = 4 * 1024 * 1024;
const PIECE_BYTES = 256 * 1024;
const SLICE_MS = 10;
const QUIET_MS = 10_000;

export class Feed {
  /**
   * `url`: the log without query; `lines`: a Lines to fill; `attempt`: whose log.
   * `onBytes()` after each piece, `onState({size, complete, error})` when one of them changes.
   */
  constructor({ url, attempt, lines, onBytes, onState }) {
    Object.assign(this, { url, attempt, lines, onBytes, onState });
    this.known = lines.end; // bytes the hub is known to hold
    this.complete = false;
    this.busy = false;
    this.abort = new AbortController();
    this.heard = Date.now();
    this.failures = 0;
    this.watch = setInterval(() => this.look(), QUIET_MS / 2);
  }

  stop() {
    this.abort.abort();
    clearInterval(this.watch);
    clearTimeout(this.retry);
  }

  /** A `log.appended` of this log: its bytes are taken where they fit, else the range is fetched. */
  receive({ offset, size, data }) {
    this.heard = Date.now();
    const end = offset + size;
    if (end <= this.lines.end) return;
    if (data && !this.busy && offset <= this.lines.end) {
      this.lines.append(decode(data).subarray(this.lines.end - offset));
      this.grown(end);
    } else {
      this.known = Math.max(this.known, end);
      this.fetch();
    }
  }

  /** Fetch until all that the hub holds is here. */
  async fetch() {
    if (this.busy) return;
    this.busy = true;
    try {
      do await this.fetchRange();
      while (this.lines.end < this.known);
      this.failures = 0;
      this.tell("");
    } catch (error) {
      if (this.abort.signal.aborted) return;
      this.failures += 1;
      this.tell(`The log could not be fetched (${error.message}); trying again.`);
      this.retry = setTimeout(() => this.fetch(), Math.min(500 * 2 ** this.failures, 15_000));
    } finally {
      this.busy = false;
    }
  }

  async fetchRange() {
    const query = new URLSearchParams({ offset: this.lines.end, limit: AT_ONCE_BYTES, attempt: this.attempt });
    const response = await fetch(`${this.url}?${query}`, { signal: this.abort.signal, cache: "no-store" });
    if (response.status === 404) return void (this.known = this.lines.end); // nothing written yet
    if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
    this.known = Math.max(this.known, Number(response.headers.get("X-Log-Size")));
    this.complete = response.headers.get("X-Log-Complete") === "true";
    const before = this.lines.end;
    await this.take(response.body.getReader());
    if (this.lines.end === before) this.known = before; // asked and got nothing: do not ask in a circle
  }

  async take(reader) {
    let since = performance.now();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      for (let at = 0; at < value.length; at += PIECE_BYTES) {
        this.lines.append(value.subarray(at, at + PIECE_BYTES));
        this.grown(this.known);
        if (performance.now() - since < SLICE_MS) continue;
        await new Promise((resume) => setTimeout(resume)); // let the page paint and scroll
        since = performance.now();
      }
    }
  }

  grown(known) {
    this.heard = Date.now();
    this.known = Math.max(this.known, known);
    this.onBytes();
  }

  tell(error) {
    this.onState({ size: this.known, complete: this.complete, error });
  }

  /** The safety net under the socket: after a long silence ask once. */
  look() {
    if (this.complete || document.hidden || Date.now() - this.heard < QUIET_MS) return;
    this.heard = Date.now();
    this.fetch();
  }
}

export function decode(base64) {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

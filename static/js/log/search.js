// Looks through all logs of an attempt on the hub, page by page, until everything is looked through.

const PER_PAGE = 200;
const MOST_HITS = 2000;

export class Search {
  /** `url`: the search of the API. `onChange()` whenever hits, progress or state have changed. */
  constructor({ url, onChange }) {
    Object.assign(this, { url, onChange });
    this.clear();
  }

  /** States: "" (nothing asked), busy, done, stopped, full, failed (`error` says why). */
  clear() {
    this.abort?.abort();
    Object.assign(this, { state: "", hits: [], seen: new Set(), searched: 0, total: 0, logs: 0, error: "", asked: null });
  }

  /** `asked`: {q, regex, case, attempt}. */
  start(asked) {
    this.clear();
    Object.assign(this, { asked, cursor: "" });
    this.more();
  }

  /** Go on, for example past the number of hits that are shown at first. */
  async more() {
    const abort = (this.abort = new AbortController());
    this.state = "busy";
    this.most = this.hits.length + MOST_HITS;
    this.onChange();
    try {
      while (this.state === "busy") await this.page(abort.signal);
    } catch (error) {
      if (abort.signal.aborted) return;
      this.state = "failed";
      this.error = error.message;
    }
    if (!abort.signal.aborted) this.onChange();
  }

  stop() {
    this.abort?.abort();
    this.state = "stopped";
    this.onChange();
  }

  async page(signal) {
    const query = new URLSearchParams({ ...this.asked, limit: PER_PAGE, cursor: this.cursor });
    const response = await fetch(`${this.url}?${query}`, { signal, cache: "no-store" });
    const told = await response.json();
    if (!response.ok) throw new Error(told.detail ?? response.statusText);
    this.take(told);
    this.cursor = told.next ?? "";
    if (!told.next) this.state = "done";
    else if (this.hits.length >= this.most) this.state = "full";
    this.onChange();
  }

  take(told) {
    this.searched = told.searched_bytes;
    this.total = told.total_bytes;
    this.logs = told.logs;
    for (const hit of told.results) {
      const key = `${hit.offset} ${hit.log}`;
      if (!this.seen.has(key)) this.hits.push(hit); // of a log that grows a line may come again
      this.seen.add(key);
    }
  }

  get share() {
    return this.state === "done" ? 1 : Math.min(1, this.searched / (this.total || 1));
  }
}

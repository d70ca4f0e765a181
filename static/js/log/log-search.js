// Searches all logs of an attempt on the hub, page by page, until all are searched.

const PAGE_HITS = 200;
const MAX_HITS = 2000;

export class LogSearch {
  /** `url`: the API's search. `onChange()` is called whenever hits, progress or state have changed. */
  constructor({ url, onChange }) {
    Object.assign(this, { url, onChange });
    this.clear();
  }

  /** Forgets the query. States: "" (no query), busy, done, stopped, full (too many hits), failed (`error` says why). */
  clear() {
    this.abort?.abort();
    Object.assign(this, {
      state: "",
      hits: [],
      keys: new Set(),
      searched: 0,
      total: 0,
      logs: 0,
      error: "",
      query: null,
    });
  }

  /** `query`: {q, regex, case, attempt}, the parameters of the API. */
  start(query) {
    this.clear();
    Object.assign(this, { query, cursor: "" });
    this.resume();
  }

  /** Continues the search, for example past the first MAX_HITS hits. */
  async resume() {
    const abort = (this.abort = new AbortController());
    this.state = "busy";
    this.limit = this.hits.length + MAX_HITS;
    this.onChange();
    try {
      while (this.state === "busy") await this.fetchPage(abort.signal);
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

  async fetchPage(signal) {
    const params = new URLSearchParams({ ...this.query, limit: PAGE_HITS, cursor: this.cursor });
    const response = await fetch(`${this.url}?${params}`, { signal, cache: "no-store" });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.detail ?? response.statusText);
    this.addResults(answer);
    this.cursor = answer.next ?? "";
    if (!answer.next) this.state = "done";
    else if (this.hits.length >= this.limit) this.state = "full";
    this.onChange();
  }

  addResults(answer) {
    this.searched = answer.searched_bytes;
    this.total = answer.total_bytes;
    this.logs = answer.logs;
    for (const hit of answer.results) {
      const key = `${hit.offset} ${hit.log}`;
      if (!this.keys.has(key)) this.hits.push(hit); // while a log grows, the same line may come again
      this.keys.add(key);
    }
  }

  get share() {
    return this.state === "done" ? 1 : Math.min(1, this.searched / (this.total || 1));
  }
}

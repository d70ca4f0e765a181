// Finds text in a log of any length without blocking the page: it searches a slice of lines at a time.

const SLICE_MS = 8;

export class TextFinder {
  /** `onChange()` is called when the number of hits or the current one has changed. */
  constructor(onChange) {
    this.onChange = onChange;
    this.clear();
  }

  clear() {
    clearTimeout(this.timer);
    this.needle = "";
    this.hits = []; // lines, ascending
    this.openLineHit = false; // whether the last hit is in the open line
    this.searched = 0;
    this.current = -1;
  }

  /** Searches `lines` for `text`, ignoring case. An empty text ends the search. */
  start(text, lines) {
    this.clear();
    this.needle = text.toLowerCase();
    this.lines = lines;
    this.resume();
  }

  /** Continues where the search stopped, for example because the log has grown. */
  resume() {
    clearTimeout(this.timer);
    if (!this.needle) return;
    const until = performance.now() + SLICE_MS;
    if (this.openLineHit) this.hits.pop();
    this.openLineHit = false;
    while (this.searched < this.lines.last && performance.now() < until) this.testLine(this.searched++);
    if (this.searched < this.lines.last) this.timer = setTimeout(() => this.resume());
    else this.testOpenLine();
    this.current = Math.min(this.current, this.hits.length - 1);
    this.onChange();
  }

  get isDone() {
    return !this.needle || this.searched >= this.lines.last;
  }

  testLine(line) {
    if (this.lines.plain(line).toLowerCase().includes(this.needle)) this.hits.push(line);
  }

  /** The last line has no newline yet and may still change: its hit is provisional. */
  testOpenLine() {
    if (this.lines.count === this.lines.last) return;
    const before = this.hits.length;
    this.testLine(this.lines.last);
    this.openLineHit = this.hits.length > before;
  }

  /**
   * Moves to the next (+1) or previous (-1) hit, cyclically, and returns its line. The first move goes to the first hit
   * at or after `from`. Returns null if there is no hit.
   */
  move(step, from = 0) {
    if (this.hits.length === 0) return null;
    if (this.current < 0) {
      const next = this.hits.findIndex((line) => line >= from);
      this.current = next < 0 ? 0 : next;
    } else {
      this.current = (this.current + step + this.hits.length) % this.hits.length;
    }
    this.onChange();
    return this.hits[this.current];
  }

  get line() {
    return this.hits[this.current] ?? null;
  }

  get label() {
    if (!this.needle) return "";
    const count = `${this.hits.length}${this.isDone ? "" : "+"}`;
    if (this.hits.length === 0) return this.isDone ? "none" : "…";
    const unit = this.hits.length === 1 ? "line" : "lines";
    return this.current < 0 ? `${count} ${unit}` : `${this.current + 1} of ${count}`;
  }
}

/**
 * Returns the first line from `from` on that contains `text`, or -1. Works in slices, so that the page stays
 * responsive.
 */
export async function findFirst(text, lines, from = 0) {
  let until = performance.now() + SLICE_MS;
  for (let line = from; line < lines.count; line++) {
    if (lines.plain(line).includes(text)) return line;
    if (performance.now() > until) {
      await new Promise((resume) => setTimeout(resume));
      until = performance.now() + SLICE_MS;
    }
  }
  return -1;
}

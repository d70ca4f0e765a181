// Finding text in a log of any length without holding up the page: a slice of lines at a time.

const SLICE_MS = 8;

export class Find {
  /** `onChange()` when the count grew or the place moved. */
  constructor(onChange) {
    this.onChange = onChange;
    this.clear();
  }

  clear() {
    clearTimeout(this.timer);
    this.needle = "";
    this.hits = []; // lines, ascending
    this.searched = 0;
    this.current = -1;
  }

  /** Look for `text` in `lines`, ignoring case; an empty text ends the search. */
  start(text, lines) {
    this.clear();
    this.needle = text.toLowerCase();
    this.lines = lines;
    this.more();
  }

  /** Go on where the search stopped, for example because the log has grown. */
  more() {
    clearTimeout(this.timer);
    if (!this.needle) return;
    const until = performance.now() + SLICE_MS;
    // The open line may still change, so it is looked at again.
    while (this.searched < this.lines.last && performance.now() < until) this.look(this.searched++);
    if (this.searched < this.lines.last) this.timer = setTimeout(() => this.more());
    this.onChange();
  }

  get isDone() {
    return !this.needle || this.searched >= this.lines.last;
  }

  look(line) {
    if (this.lines.plain(line).toLowerCase().includes(this.needle)) this.hits.push(line);
  }

  /** The hit `step` further (+1, -1), around the end; the first one at or after `from` when none is current yet. */
  go(step, from = 0) {
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
    return this.current < 0 ? `${count} lines` : `${this.current + 1} of ${count}`;
  }
}

/** The first line from `from` on whose text holds `text`, or -1; in slices, so that the page stays alive. */
export async function firstWith(text, lines, from = 0) {
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

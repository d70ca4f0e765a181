// The visible part of a log: a spacer as tall as all lines, and DOM rows only for those in view.
import { below } from "./lines.js";

const TALLEST_PX = 15_000_000; // browsers cannot lay out much more; beyond it scrolling is scaled
const AROUND = 12;
const AT_BOTTOM_PX = 6;

export class Rows {
  /** `draw(line)` makes the row element of a line; `onFollow(following)` is told of every change. */
  constructor(scroller, { draw, onFollow }) {
    Object.assign(this, { scroller, draw, onFollow });
    this.spacer = scroller.appendChild(document.createElement("div"));
    this.spacer.className = "log-spacer";
    this.block = this.spacer.appendChild(document.createElement("div"));
    this.block.className = "log-rows";
    this.drawn = new Map();
    this.following = true;
    this.wrap = false;
    this.prefix = new Float64Array(1);
    this.counted = 0;
    this.lastTop = 0;
    scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.resized = new ResizeObserver(() => this.measure());
    this.resized.observe(scroller);
    this.settled = new ResizeObserver(() => this.wrap && this.following && this.stick());
    this.settled.observe(this.block);
  }

  close() {
    this.resized.disconnect();
    this.settled.disconnect();
    cancelAnimationFrame(this.frame);
  }

  /** Show another log. */
  use(lines) {
    this.lines = lines;
    this.clear();
    this.measure();
  }

  setWrap(wrap) {
    const line = this.firstVisible();
    this.wrap = wrap;
    this.clear();
    this.measure();
    if (!this.following) this.show(line, "start");
  }

  follow(following) {
    if (this.following === following) return;
    this.following = following;
    this.onFollow(following);
    if (following) this.changed();
  }

  /** Lines were added: draw at the next frame. */
  changed() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.layOut();
    });
  }

  /** Bring a line into view and leave follow mode. */
  show(line, where = "center") {
    this.follow(false);
    this.layOut();
    const room = where === "center" ? (this.height - this.rowPx) / 2 : 0;
    this.scroller.scrollTop = this.unscaled(this.top(line) - room);
    this.layOut();
    if (this.wrap) this.drawn.get(line)?.scrollIntoView({ block: where });
  }

  /** Draw every row anew, for example with other marks. */
  redraw() {
    this.clear();
    this.layOut();
  }

  clear() {
    this.block.replaceChildren();
    this.drawn.clear();
    this.counted = 0;
  }

  measure() {
    const probe = this.block.appendChild(document.createElement("div"));
    probe.className = "log-row";
    probe.innerHTML = '<span class="log-number">1</span><span class="log-text">0000000000</span>';
    const text = probe.lastChild;
    const range = document.createRange();
    range.selectNodeContents(text);
    this.rowPx = probe.getBoundingClientRect().height || 18;
    const letter = range.getBoundingClientRect().width / 10 || 7.5;
    this.columns = Math.max(10, Math.floor(text.getBoundingClientRect().width / letter));
    probe.remove();
    this.height = this.scroller.clientHeight;
    this.counted = 0;
    this.changed();
  }

  layOut() {
    if (!this.lines || !this.rowPx) return;
    this.count();
    const total = this.top(this.lines.count);
    this.spacer.style.height = `${Math.min(total, TALLEST_PX)}px`;
    this.scale = total > TALLEST_PX ? (total - this.height) / (TALLEST_PX - this.height) : 1;
    if (this.following) this.scroller.scrollTop = this.scroller.scrollHeight;
    this.lastTop = this.scroller.scrollTop;
    const y = this.lastTop * this.scale;
    const first = Math.max(0, this.lineAt(y) - AROUND);
    const last = Math.min(this.lines.count, this.lineAt(y + this.height) + AROUND + 1);
    this.place(first, last, this.lastTop + this.top(first) - y);
    if (this.following && this.wrap) this.stick();
  }

  place(first, last, top) {
    for (const [line, row] of this.drawn) {
      // The open line still changes; every other row stays as it is while it is in view.
      if (line >= first && line < last && line !== this.lines.last && line !== this.openLine) continue;
      row.remove();
      this.drawn.delete(line);
    }
    this.openLine = this.lines.last;
    let before = null;
    for (let line = last - 1; line >= first; line--) {
      let row = this.drawn.get(line);
      if (!row) {
        row = this.draw(line);
        this.drawn.set(line, row);
        this.block.insertBefore(row, before);
      }
      before = row;
    }
    this.block.style.transform = `translateY(${top}px)`;
  }

  /** Wrapped rows are only estimated; the end of the log must still end at the bottom. */
  stick() {
    const over = this.block.getBoundingClientRect().bottom - this.spacer.getBoundingClientRect().bottom;
    if (Math.abs(over) < 1) return;
    const top = Number.parseFloat(this.block.style.transform.slice("translateY(".length)) || 0;
    this.block.style.transform = `translateY(${top - over}px)`;
  }

  scrolled() {
    const top = this.scroller.scrollTop;
    const atBottom = top + this.height >= this.scroller.scrollHeight - AT_BOTTOM_PX;
    if (top < this.lastTop - 1 && !atBottom) this.follow(false);
    else if (atBottom && !this.following) this.follow(true);
    this.changed();
  }

  firstVisible() {
    return this.lines && this.rowPx ? this.lineAt(this.scroller.scrollTop * (this.scale ?? 1)) : 0;
  }

  // Heights: without wrapping a line is a row; with it, its width in bytes tells about how many.

  count() {
    if (!this.wrap) return;
    const { count } = this.lines;
    if (this.prefix.length < count + 1) {
      const larger = new Float64Array(Math.max(count + 1, this.prefix.length * 2));
      larger.set(this.prefix);
      this.prefix = larger;
    }
    for (let line = Math.max(0, this.counted - 1); line < count; line++) {
      this.prefix[line + 1] = this.prefix[line] + Math.max(1, Math.ceil(this.lines.width(line) / this.columns));
    }
    this.counted = count;
  }

  top(line) {
    return (this.wrap ? this.prefix[line] : line) * this.rowPx;
  }

  lineAt(y) {
    const row = Math.max(0, Math.floor(y / this.rowPx));
    if (!this.wrap) return Math.min(row, Math.max(0, this.lines.count - 1));
    return Math.max(0, below(this.prefix, this.lines.count + 1, row + 1) - 1);
  }

  unscaled(y) {
    return Math.max(0, y) / (this.scale ?? 1);
  }
}

// Virtual scrolling of a log: a spacer as tall as all lines, and DOM rows only for the lines in view.
import { countBelow } from "./log-lines.js";

const MAX_HEIGHT_PX = 15_000_000; // browsers cannot lay out much more; in a taller log, scrolling is scaled
const EXTRA_ROWS = 12;
const AT_BOTTOM_PX = 6;

export class VirtualRows {
  /**
   * `draw(line)` returns the element of a line. `onFollow(isFollowing)` is called whenever follow mode goes on or off.
   */
  constructor(scroller, { draw, onFollow }) {
    Object.assign(this, { scroller, draw, onFollow });
    this.spacer = scroller.appendChild(document.createElement("div"));
    this.spacer.className = "log-spacer";
    this.block = this.spacer.appendChild(document.createElement("div"));
    this.block.className = "log-rows";
    this.rows = new Map();
    this.isFollowing = true;
    this.wrap = false;
    this.prefix = new Float64Array(1);
    this.counted = 0;
    this.lastTop = 0;
    this.topBeforeJump = null;
    scroller.addEventListener("scroll", () => this.handleScroll(), { passive: true });
    this.resized = new ResizeObserver(() => this.measure());
    this.resized.observe(scroller);
    this.settled = new ResizeObserver(() => this.wrap && this.isFollowing && this.alignToBottom());
    this.settled.observe(this.block);
  }

  close() {
    this.resized.disconnect();
    this.settled.disconnect();
    cancelAnimationFrame(this.frame);
  }

  /** Shows another log. */
  setLines(lines) {
    this.lines = lines;
    this.clear();
    this.measure();
  }

  setWrap(wrap) {
    const line = this.firstVisible();
    this.wrap = wrap;
    this.clear();
    this.measure();
    if (!this.isFollowing) this.scrollTo(line, "start");
  }

  setFollowing(isFollowing) {
    if (this.isFollowing === isFollowing) return;
    this.isFollowing = isFollowing;
    this.onFollow(isFollowing);
    if (isFollowing) this.scheduleLayout();
  }

  /** Draws at the next frame, for example because lines were added. */
  scheduleLayout() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.layout();
    });
  }

  /** Scrolls a line into view and leaves follow mode. */
  scrollTo(line, where = "center") {
    this.setFollowing(false);
    this.layout();
    const margin = where === "center" ? (this.height - this.rowPx) / 2 : 0;
    this.scroller.scrollTop = this.unscaled(this.top(line) - margin);
    this.layout();
    if (this.wrap) this.rows.get(line)?.scrollIntoView({ block: where });
  }

  /** Draws every row again, for example with other marks. */
  redraw() {
    this.clear();
    this.layout();
  }

  clear() {
    this.block.replaceChildren();
    this.rows.clear();
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
    this.scheduleLayout();
  }

  layout() {
    if (!this.lines || !this.rowPx) return;
    this.countWrappedRows();
    const total = this.top(this.lines.count);
    this.spacer.style.height = `${Math.min(total, MAX_HEIGHT_PX)}px`;
    this.scale = total > MAX_HEIGHT_PX ? (total - this.height) / (MAX_HEIGHT_PX - this.height) : 1;
    const before = this.scroller.scrollTop;
    if (this.isFollowing) this.scroller.scrollTop = this.scroller.scrollHeight;
    this.lastTop = this.scroller.scrollTop;
    if (this.lastTop !== before) this.topBeforeJump = before;
    const y = this.lastTop * this.scale;
    const first = Math.max(0, this.lineAt(y) - EXTRA_ROWS);
    const last = Math.min(this.lines.count, this.lineAt(y + this.height) + EXTRA_ROWS + 1);
    this.placeRows(first, last, this.lastTop + this.top(first) - y);
    if (this.isFollowing && this.wrap) this.alignToBottom();
  }

  placeRows(first, last, top) {
    for (const [line, row] of this.rows) {
      // The open line still changes; every other row stays as it is while it is in view.
      if (line >= first && line < last && line !== this.lines.last && line !== this.openLine) continue;
      row.remove();
      this.rows.delete(line);
    }
    this.openLine = this.lines.last;
    let before = null;
    for (let line = last - 1; line >= first; line--) {
      let row = this.rows.get(line);
      if (!row) {
        row = this.draw(line);
        this.rows.set(line, row);
        this.block.insertBefore(row, before);
      }
      before = row;
    }
    this.block.style.transform = `translateY(${top}px)`;
  }

  /** Aligns the last row with the bottom: the heights of wrapped rows are only estimated. */
  alignToBottom() {
    const overhang = this.block.getBoundingClientRect().bottom - this.spacer.getBoundingClientRect().bottom;
    if (Math.abs(overhang) < 1) return;
    const top = Number.parseFloat(this.block.style.transform.slice("translateY(".length)) || 0;
    this.block.style.transform = `translateY(${top - overhang}px)`;
  }

  handleScroll() {
    const top = this.scroller.scrollTop;
    const atBottom = top + this.height >= this.scroller.scrollHeight - AT_BOTTOM_PX;
    // A busy browser may go back to where it was before the last jump to the end. That is not the reader's wish.
    const isEcho = this.isFollowing && top === this.topBeforeJump;
    if (top < this.lastTop - 1 && !atBottom && !isEcho) this.setFollowing(false);
    else if (atBottom && !this.isFollowing) this.setFollowing(true);
    this.scheduleLayout();
  }

  firstVisible() {
    return this.lines && this.rowPx ? this.lineAt(this.scroller.scrollTop * (this.scale ?? 1)) : 0;
  }

  // Heights: without wrapping a line is one row; with it, its width in bytes gives an estimate of its rows.

  countWrappedRows() {
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
    return Math.max(0, countBelow(this.prefix, this.lines.count + 1, row + 1) - 1);
  }

  unscaled(y) {
    return Math.max(0, y) / (this.scale ?? 1);
  }
}

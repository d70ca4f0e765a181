// Where the lines of a growing log begin, and with which style: bytes in, lines out, drawn only when looked at.
import { PLAIN } from "./ansi.js";
import { Bytes } from "./bytes.js";
import { render } from "./terminal.js";

const NEWLINE = 10;
const RETURN = 13;
const ESCAPE = 27;
const [BRACKET, ZERO, LETTER_M] = [0x5b, 0x30, 0x6d];
/** A longer line is cut into pieces; one that redraws itself keeps only what was drawn last. */
export const LONGEST_LINE_BYTES = 32 * 1024;

const decoder = new TextDecoder("utf-8");

export class Lines {
  /** `base`: the offset in the file at which this store begins. */
  constructor(base = 0) {
    this.base = base;
    this.bytes = new Bytes();
    this.starts = new Float64Array(4096);
    this.last = 0; // index of the open line
    this.skipped = 0; // lines of the file before the first one here, as far as known
    this.styles = new Map(); // line -> style it begins with, where that is not plain
    this.skips = new Map(); // line -> where its drawing begins, where that is later than its start
    this.pieces = []; // lines that only continue the one before
    this.openHasEscape = false;
    this.openIsReset = false; // its last escape ends all colours, so the rest of it need not be read
  }

  get count() {
    return this.bytes.length > this.starts[this.last] ? this.last + 1 : this.last;
  }

  /** The file offset after the last byte held. */
  get end() {
    return this.base + this.bytes.length;
  }

  append(data) {
    const position = this.bytes.length;
    this.bytes.append(data);
    let escape = data.indexOf(ESCAPE);
    for (let start = 0; start < data.length; ) {
      const newline = data.indexOf(NEWLINE, start);
      const end = newline < 0 ? data.length : newline;
      if (escape >= 0 && escape < start) escape = data.indexOf(ESCAPE, start);
      if (escape >= 0 && escape < end) {
        this.openHasEscape = true;
        this.openIsReset = isReset(data, data.lastIndexOf(ESCAPE, end - 1));
      }
      if (position + end - this.drawnFrom(this.last) > LONGEST_LINE_BYTES) this.extend(data.subarray(start, end), position + start);
      if (newline >= 0) this.close(position + newline + 1);
      start = end + 1;
    }
  }

  /** Where the drawing of a line begins in the store. */
  drawnFrom(line) {
    return this.skips.get(line) ?? this.starts[line];
  }

  text(line) {
    const end = line < this.last ? this.starts[line + 1] : this.bytes.length;
    const bytes = this.bytes.slice(this.drawnFrom(line), end);
    return decoder.decode(bytes.length && bytes[bytes.length - 1] === NEWLINE ? bytes.subarray(0, -1) : bytes);
  }

  segments(line) {
    return render(this.text(line), this.styles.get(line) ?? PLAIN).segments;
  }

  plain(line) {
    return this.segments(line).map((segment) => segment.text).join("");
  }

  /** Bytes of the line as stored: a cheap upper bound of its width. */
  width(line) {
    const end = line < this.last ? this.starts[line + 1] - 1 : this.bytes.length;
    return end - this.drawnFrom(line);
  }

  /** The number printed beside the line, or null for a piece of the line above. */
  number(line) {
    const before = below(this.pieces, this.pieces.length, line);
    return this.pieces[before] === line ? null : line + 1 - before + this.skipped;
  }

  /** `line` is known to be the file's line `number`: this store does not begin at the file's first one. */
  renumber(line, number) {
    this.skipped += number - (this.number(line) ?? number);
  }

  /** The line that holds the byte at this offset of the file. */
  at(offset) {
    return Math.max(0, Math.min(this.count, below(this.starts, this.last + 1, offset - this.base + 1)) - 1);
  }

  /** The open line has grown too long by `part`, which stands at `position`. */
  extend(part, position) {
    while (position + part.length - this.drawnFrom(this.last) > LONGEST_LINE_BYTES) {
      const redrawn = part.lastIndexOf(RETURN, part.length - 2);
      if (redrawn >= 0) {
        this.skips.set(this.last, position + redrawn + 1);
        if (part.length - redrawn <= LONGEST_LINE_BYTES) return;
      }
      const cut = this.beforeCharacter(this.drawnFrom(this.last) + LONGEST_LINE_BYTES);
      this.close(cut);
      this.pieces.push(this.last);
      part = part.subarray(Math.max(0, cut - position));
      position = Math.max(position, cut);
    }
  }

  /** `position` moved back so that it does not stand inside a UTF-8 character. */
  beforeCharacter(position) {
    const bytes = this.bytes.slice(position - 3, position + 1);
    let back = 0;
    while (back < 3 && (bytes[3 - back] & 0xc0) === 0x80) back++;
    return position - back;
  }

  close(next) {
    const style = this.styles.get(this.last) ?? PLAIN;
    let end = style;
    this.grow();
    this.starts[this.last + 1] = next;
    this.last += 1;
    if (this.openHasEscape) end = this.openIsReset ? PLAIN : render(this.text(this.last - 1), style).end;
    if (end !== PLAIN) this.styles.set(this.last, end);
    this.openHasEscape = false;
  }

  grow() {
    if (this.last + 2 <= this.starts.length) return;
    const larger = new Float64Array(this.starts.length * 2);
    larger.set(this.starts);
    this.starts = larger;
  }
}

/** Whether `ESC [ m` or `ESC [ 0 m` stands at `position`. */
function isReset(data, position) {
  if (data[position + 1] !== BRACKET) return false;
  return data[position + 2] === LETTER_M || (data[position + 2] === ZERO && data[position + 3] === LETTER_M);
}

/** How many of the first `length` ascending `values` are below `limit`. */
export function below(values, length, limit) {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

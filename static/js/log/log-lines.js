// The lines of a growing log: takes bytes, keeps where each line begins and with which style, and decodes a line when
// it is read.
import { PLAIN } from "./ansi.js";
import { ByteBuffer } from "./byte-buffer.js";
import { renderLine } from "./terminal.js";

const NEWLINE = 10;
const RETURN = 13;
const ESCAPE = 27;
const [BRACKET, ZERO, LETTER_M] = [0x5b, 0x30, 0x6d];
/**
 * A longer line is split into pieces. Of one that redraws itself with carriage returns only the last drawing is kept.
 */
export const MAX_LINE_BYTES = 32 * 1024;

const MAX_SEQUENCE_BYTES = 64;
const INCOMPLETE_SEQUENCE = /^\x1b(\[[0-?]*[ -/]*)?$/;

const decoder = new TextDecoder("utf-8");

export class LogLines {
  /** `base`: the offset in the file of the first byte. */
  constructor(base = 0) {
    this.base = base;
    this.bytes = new ByteBuffer();
    this.starts = new Float64Array(4096);
    this.last = 0; // index of the open line, which has no newline yet
    this.skipped = 0; // lines of the file before the first one here, if known
    this.styles = new Map(); // line -> the style with which it begins, if not plain
    this.skips = new Map(); // line -> where its last drawing begins, if after its start
    this.pieces = []; // lines that continue the one before, ascending
    this.openHasEscape = false;
    this.openIsReset = false; // its last escape resets the style, so its end is known without rendering
  }

  get count() {
    return this.bytes.length > this.starts[this.last] ? this.last + 1 : this.last;
  }

  /** The offset in the file after the last byte here. */
  get end() {
    return this.base + this.bytes.length;
  }

  append(data) {
    const position = this.bytes.length;
    this.bytes.append(data);
    let escape = data.indexOf(ESCAPE);
    for (let start = 0; start < data.length;) {
      const newline = data.indexOf(NEWLINE, start);
      const end = newline < 0 ? data.length : newline;
      if (escape >= 0 && escape < start) escape = data.indexOf(ESCAPE, start);
      if (escape >= 0 && escape < end) {
        this.openHasEscape = true;
        this.openIsReset = isReset(data, data.lastIndexOf(ESCAPE, end - 1));
      }
      if (position + end - this.drawingStart(this.last) > MAX_LINE_BYTES)
        this.extend(data.subarray(start, end), position + start);
      if (newline >= 0) this.close(position + newline + 1);
      start = end + 1;
    }
  }

  /** Returns where the last drawing of a line begins in the buffer. */
  drawingStart(line) {
    return this.skips.get(line) ?? this.starts[line];
  }

  text(line) {
    const end = line < this.last ? this.starts[line + 1] : this.bytes.length;
    const bytes = this.bytes.slice(this.drawingStart(line), end);
    return decoder.decode(bytes.length && bytes[bytes.length - 1] === NEWLINE ? bytes.subarray(0, -1) : bytes);
  }

  segments(line) {
    return renderLine(this.text(line), this.styles.get(line) ?? PLAIN).segments;
  }

  plain(line) {
    return this.segments(line)
      .map((segment) => segment.text)
      .join("");
  }

  /** Returns the bytes of a line: a cheap upper bound of its width in columns. */
  width(line) {
    const end = line < this.last ? this.starts[line + 1] - 1 : this.bytes.length;
    return end - this.drawingStart(line);
  }

  /** Returns the number to show beside the line, or null for a piece that continues the line above. */
  number(line) {
    const before = countBelow(this.pieces, this.pieces.length, line);
    return this.pieces[before] === line ? null : line + 1 - before + this.skipped;
  }

  /** Sets that `line` is the file's line `number`: the first line here may not be the first of the file. */
  renumber(line, number) {
    this.skipped += number - (this.number(line) ?? number);
  }

  /** Returns the line that contains the byte at this offset of the file. */
  at(offset) {
    return Math.max(0, Math.min(this.count, countBelow(this.starts, this.last + 1, offset - this.base + 1)) - 1);
  }

  /** Shortens or splits the open line, which has grown too long by `part` at `position`. */
  extend(part, position) {
    while (position + part.length - this.drawingStart(this.last) > MAX_LINE_BYTES) {
      const carriageReturn = part.lastIndexOf(RETURN, part.length - 2);
      if (carriageReturn >= 0) {
        this.skipTo(position + carriageReturn + 1);
        if (part.length - carriageReturn <= MAX_LINE_BYTES) return;
      }
      const end = position + part.length;
      const cut = this.beforeSequence(this.beforeCharacter(this.drawingStart(this.last) + MAX_LINE_BYTES));
      this.openIsReset = false; // the reset may lie after the cut
      this.close(cut);
      this.pieces.push(this.last);
      this.openHasEscape = this.bytes.slice(cut, end).includes(ESCAPE);
      part = part.subarray(Math.max(0, cut - position));
      position = Math.max(position, cut);
    }
  }

  /** Moves `position` back so that it does not lie inside a UTF-8 character. */
  beforeCharacter(position) {
    const bytes = this.bytes.slice(position - 3, position + 1);
    let steps = 0;
    while (steps < 3 && (bytes[3 - steps] & 0xc0) === 0x80) steps++;
    return position - steps;
  }

  /** Moves `position` back so that it does not lie inside an escape sequence, whose rest would be shown as text. */
  beforeSequence(position) {
    const before = this.bytes.slice(position - MAX_SEQUENCE_BYTES, position);
    const start = before.lastIndexOf(ESCAPE);
    if (start < 0 || !INCOMPLETE_SEQUENCE.test(String.fromCharCode(...before.subarray(start)))) return position;
    return position - before.length + start;
  }

  /** Drops the drawing of the open line before `position`, but keeps the style that it has set. */
  skipTo(position) {
    if (this.openHasEscape) {
      const dropped = decoder.decode(this.bytes.slice(this.drawingStart(this.last), position));
      this.styles.set(this.last, renderLine(dropped, this.styles.get(this.last) ?? PLAIN).end);
    }
    this.skips.set(this.last, position);
  }

  close(next) {
    const style = this.styles.get(this.last) ?? PLAIN;
    let end = style;
    this.grow();
    this.starts[this.last + 1] = next;
    this.last += 1;
    if (this.openHasEscape) end = this.openIsReset ? PLAIN : renderLine(this.text(this.last - 1), style).end;
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

/** Whether `ESC [ m` or `ESC [ 0 m` is at `position`. */
function isReset(data, position) {
  if (data[position + 1] !== BRACKET) return false;
  return data[position + 2] === LETTER_M || (data[position + 2] === ZERO && data[position + 3] === LETTER_M);
}

/** Returns how many of the first `length` ascending `values` are below `limit`. */
export function countBelow(values, length, limit) {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

// One line of a log as a terminal would show it: \r and \b move the cursor, CSI K erases, SGR sets the style.
import { PLAIN, applySgr } from "./ansi.js";

const CONTROL = /[\x00-\x08\x0b-\x1f\x7f]/;
// A control sequence: parameters, intermediate bytes and, if it is complete and well formed, a final byte.
const CSI = /\x1b\[([0-?]*)[ -/]*([@-~]?)/y;
// A command string such as a window title or a hyperlink. It ends with BEL or ESC \; any other ESC aborts it.
const STRING = /\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|)/y;
const MAX_COLUMN = 1 << 16;

/** Returns {segments: [{text, style}], end}: the visible text, and the style with which the next line begins. */
export function renderLine(text, style = PLAIN) {
  if (!CONTROL.test(text)) return { segments: text ? [{ text, style }] : [], end: style };
  const screen = new ScreenLine(style);
  let index = 0;
  while (index < text.length) {
    const code = text.charCodeAt(index);
    if (code === 27) index = runEscape(text, index, screen);
    else if (code === 13) [screen.column, index] = [0, index + 1];
    else if (code === 8) [screen.column, index] = [Math.max(0, screen.column - 1), index + 1];
    else if ((code < 32 && code !== 9) || code === 127) index += 1;
    else {
      const character = String.fromCodePoint(text.codePointAt(index));
      screen.write(character);
      index += character.length;
    }
  }
  return { segments: screen.segments(), end: screen.style };
}

/** Returns the visible text without its styles. */
export function plainText(text) {
  return renderLine(text)
    .segments.map((segment) => segment.text)
    .join("");
}

/** Executes the escape sequence at `index`. Returns the index after it. */
function runEscape(text, index, screen) {
  CSI.lastIndex = index;
  const match = CSI.exec(text);
  if (match) {
    // Without a final byte it is malformed, or the rest of it has not arrived yet: it has no effect and stays
    // invisible.
    if (match[2]) runCommand(screen, match[2], match[1]);
    return CSI.lastIndex;
  }
  STRING.lastIndex = index;
  if (STRING.test(text)) return STRING.lastIndex;
  return index + ("()*+#% ".includes(text[index + 1]) ? 3 : 2);
}

function runCommand(screen, letter, params) {
  const count = Number.parseInt(params, 10) || 0;
  if (letter === "m") screen.style = applySgr(screen.style, params);
  else if (letter === "K") screen.erase(count);
  else if (letter === "J") screen.erase(Math.min(count, 2));
  else if (letter === "G") screen.move(Math.max(1, count) - 1);
  else if (letter === "C") screen.move(screen.column + Math.max(1, count));
  else if (letter === "D") screen.move(screen.column - Math.max(1, count));
}

class ScreenLine {
  constructor(style) {
    this.characters = [];
    this.styles = [];
    this.column = 0;
    this.style = style;
  }

  write(character) {
    while (this.characters.length < this.column) this.put(this.characters.length, " ", PLAIN);
    this.put(this.column, character, this.style);
    this.column += 1;
  }

  put(column, character, style) {
    this.characters[column] = character;
    this.styles[column] = style;
  }

  move(column) {
    this.column = Math.min(Math.max(0, column), MAX_COLUMN);
  }

  /** Erases to the end (0), to the start (1) or all (2) of the line, as `CSI K` does. */
  erase(mode) {
    if (mode === 0) this.cut(this.column);
    else if (mode === 2) this.cut(0);
    else if (mode === 1)
      for (let column = 0; column <= this.column && column < this.characters.length; column++)
        this.put(column, " ", PLAIN);
  }

  cut(length) {
    if (length < this.characters.length) this.characters.length = this.styles.length = length;
  }

  segments() {
    const segments = [];
    for (let start = 0, end = 1; start < this.characters.length; start = end++) {
      while (end < this.characters.length && this.styles[end] === this.styles[start]) end++;
      segments.push({ text: this.characters.slice(start, end).join(""), style: this.styles[start] });
    }
    return segments;
  }
}

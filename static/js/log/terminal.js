// One line of a log as a terminal would show it: \r and \b move the cursor, CSI K erases, SGR colours.
import { PLAIN, styled } from "./ansi.js";

const CONTROL = /[\x00-\x08\x0b-\x1f\x7f]/;
const CSI = /\x1b\[([0-?]*)[ -/]*([@-~])/y;
const OSC = /\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)/y;
const WIDEST = 1 << 16;

/** `{segments: [{text, style}], end}`: what is seen, and the style the next line begins with. */
export function render(text, style = PLAIN) {
  if (!CONTROL.test(text)) return { segments: text ? [{ text, style }] : [], end: style };
  const screen = new Line(style);
  let at = 0;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === 27) at = escape(text, at, screen);
    else if (code === 13) [screen.column, at] = [0, at + 1];
    else if (code === 8) [screen.column, at] = [Math.max(0, screen.column - 1), at + 1];
    else if ((code < 32 && code !== 9) || code === 127) at += 1;
    else {
      const character = String.fromCodePoint(text.codePointAt(at));
      screen.write(character);
      at += character.length;
    }
  }
  return { segments: screen.segments(), end: screen.style };
}

export function plain(text) {
  return render(text).segments.map((segment) => segment.text).join("");
}

/** Carries out one escape sequence; returns where the text goes on. */
function escape(text, at, screen) {
  CSI.lastIndex = at;
  const found = CSI.exec(text);
  if (found) {
    command(screen, found[2], found[1]);
    return CSI.lastIndex;
  }
  OSC.lastIndex = at;
  if (OSC.exec(text)) return OSC.lastIndex;
  // Cut off in the middle: the rest of it has not arrived.
  if (text[at + 1] === "[" || text[at + 1] === "]") return text.length;
  return at + ("()*+#% ".includes(text[at + 1]) ? 3 : 2);
}

function command(screen, letter, params) {
  const count = Number.parseInt(params, 10) || 0;
  if (letter === "m") screen.style = styled(screen.style, params);
  else if (letter === "K") screen.erase(count);
  else if (letter === "J" && count >= 2) screen.erase(2);
  else if (letter === "G") screen.move(Math.max(1, count) - 1);
  else if (letter === "C") screen.move(screen.column + Math.max(1, count));
  else if (letter === "D") screen.move(screen.column - Math.max(1, count));
}

class Line {
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
    this.column = Math.min(Math.max(0, column), WIDEST);
  }

  erase(what) {
    if (what === 0) this.cut(this.column);
    else if (what === 2) this.cut(0);
    else for (let column = 0; column <= this.column && column < this.characters.length; column++) this.put(column, " ", PLAIN);
  }

  cut(length) {
    if (length < this.characters.length) this.characters.length = this.styles.length = length;
  }

  segments() {
    const out = [];
    for (let start = 0, end = 1; start < this.characters.length; start = end++) {
      while (end < this.characters.length && this.styles[end] === this.styles[start]) end++;
      out.push({ text: this.characters.slice(start, end).join(""), style: this.styles[start] });
    }
    return out;
  }
}

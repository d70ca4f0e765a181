// A line as a DOM row: number, coloured segments, marks where the search hit.
import { BOLD, DIM, INVERSE, ITALIC, PLAIN, STRIKE, UNDERLINE } from "./ansi.js";

const FLAGS = [[BOLD, "a-bold"], [DIM, "a-dim"], [ITALIC, "a-italic"], [UNDERLINE, "a-under"], [STRIKE, "a-strike"], [INVERSE, "a-inverse"]];

export function drawRow(lines, line, needle, isCurrent) {
  const row = document.createElement("div");
  row.className = isCurrent ? "log-row log-current" : "log-row";
  row.dataset.line = line;
  const number = document.createElement("span");
  number.className = "log-number";
  number.textContent = lines.number(line) ?? "";
  const text = document.createElement("span");
  text.className = "log-text";
  const segments = lines.segments(line);
  for (const segment of needle ? marked(segments, needle) : segments) text.append(piece(segment));
  row.append(number, text);
  return row;
}

function piece({ text, style, mark }) {
  if (style === PLAIN && !mark) return document.createTextNode(text);
  const element = document.createElement(mark ? "mark" : "span");
  element.textContent = text;
  for (const [flag, name] of FLAGS) if (style.flags & flag) element.classList.add(name);
  color(element, style.fg, "fg");
  color(element, style.bg, "bg");
  return element;
}

function color(element, value, side) {
  if (value === null) return;
  if (typeof value === "number") element.style.setProperty(`--${side}`, `var(--th-ansi-${value})`);
  else element.style.setProperty(`--${side}`, value);
  element.classList.add(typeof value === "number" ? `a-${side}` : `a-${side}-free`);
}

/** The segments, cut where `needle` (lower case) begins and ends; it may span several of them. */
export function marked(segments, needle) {
  const whole = segments.map((segment) => segment.text).join("").toLowerCase();
  const out = [];
  let begin = 0;
  let hit = whole.indexOf(needle);
  for (const { text, style } of segments) {
    const end = begin + text.length;
    let at = begin;
    while (hit >= 0 && hit < end) {
      const stop = Math.min(hit + needle.length, end);
      if (hit > at) out.push({ text: text.slice(at - begin, hit - begin), style });
      if (stop > Math.max(at, hit)) out.push({ text: text.slice(Math.max(at, hit) - begin, stop - begin), style, mark: true });
      at = stop;
      if (hit + needle.length > end) break;
      hit = whole.indexOf(needle, hit + needle.length);
    }
    if (at < end) out.push({ text: text.slice(at - begin), style });
    begin = end;
  }
  return out;
}

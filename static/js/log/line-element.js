// A line of a log as a DOM element: its number, its coloured segments, and marks where the search matches.
import { BOLD, DIM, INVERSE, ITALIC, PLAIN, STRIKE, UNDERLINE } from "./ansi.js";

const FLAGS = [
  [BOLD, "a-bold"],
  [DIM, "a-dim"],
  [ITALIC, "a-italic"],
  [UNDERLINE, "a-under"],
  [STRIKE, "a-strike"],
  [INVERSE, "a-inverse"],
];

export function lineElement(lines, line, needle, isCurrent) {
  const row = document.createElement("div");
  row.className = isCurrent ? "log-row log-current" : "log-row";
  row.dataset.line = line;
  const number = document.createElement("span");
  number.className = "log-number";
  number.textContent = lines.number(line) ?? "";
  const text = document.createElement("span");
  text.className = "log-text";
  const segments = lines.segments(line);
  for (const segment of needle ? splitAtMatches(segments, needle) : segments) text.append(segmentElement(segment));
  row.append(number, text);
  return row;
}

function segmentElement({ text, style, mark }) {
  if (style === PLAIN && !mark) return document.createTextNode(text);
  const element = document.createElement(mark ? "mark" : "span");
  element.textContent = text;
  for (const [flag, className] of FLAGS) if (style.flags & flag) element.classList.add(className);
  applyColor(element, style.fg, "fg");
  applyColor(element, style.bg, "bg");
  return element;
}

function applyColor(element, value, side) {
  if (value === null) return;
  if (typeof value === "number") element.style.setProperty(`--${side}`, `var(--th-ansi-${value})`);
  else element.style.setProperty(`--${side}`, value);
  element.classList.add(typeof value === "number" ? `a-${side}` : `a-${side}-free`);
}

/**
 * Splits segments where `needle` (in lower case) begins and ends, and marks its parts. A match may span several
 * segments.
 */
export function splitAtMatches(segments, needle) {
  const folded = foldCase(segments.map((segment) => segment.text).join(""));
  const pieces = [];
  let begin = 0;
  let hit = folded.indexOf(needle);
  for (const { text, style } of segments) {
    const end = begin + text.length;
    let at = begin;
    while (hit >= 0 && hit < end) {
      const stop = Math.min(hit + needle.length, end);
      if (hit > at) pieces.push({ text: text.slice(at - begin, hit - begin), style });
      if (stop > Math.max(at, hit))
        pieces.push({ text: text.slice(Math.max(at, hit) - begin, stop - begin), style, mark: true });
      at = stop;
      if (hit + needle.length > end) break;
      hit = folded.indexOf(needle, hit + needle.length);
    }
    if (at < end) pieces.push({ text: text.slice(at - begin), style });
    begin = end;
  }
  return pieces;
}

/**
 * In lower case, but of the same length: "İ" and a few more become longer, which would shift all matches after them.
 */
function foldCase(text) {
  const lower = text.toLowerCase();
  if (lower.length === text.length) return lower;
  const keepLength = (character) =>
    character.toLowerCase().length === character.length ? character.toLowerCase() : character;
  return Array.from(text, keepLength).join("");
}

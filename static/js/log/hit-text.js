// The text of a search hit as pieces that are marked or not, so that the first match is visible in a narrow column.

const MAX_BEFORE = 24;
const SHOWN_BEFORE = 12;

/** `spans`: [begin, end] of each match in `text`, in characters. Returns [{text, isMatch}] without empty pieces. */
export function hitPieces({ text, spans }) {
  const characters = [...text]; // spans count characters, JavaScript strings count UTF-16 code units
  const pieces = [];
  const add = (begin, end, isMatch) => {
    const part = characters.slice(begin, end).join("");
    if (part) pieces.push({ text: part, isMatch });
  };
  // Indentation is of little use here, so the text begins after it.
  const firstVisible = characters.findIndex((character) => character.trim());
  let start = Math.max(0, firstVisible);
  if (spans.length && spans[0][0] - start > MAX_BEFORE) {
    start = spans[0][0] - SHOWN_BEFORE;
    pieces.push({ text: "…", isMatch: false });
  }
  for (const [begin, end] of spans) {
    add(start, begin, false);
    add(begin, end, true);
    start = Math.max(start, end);
  }
  add(start, characters.length, false);
  return pieces;
}

// Positions in the text of a filter. The server counts characters (code points), JavaScript UTF-16 code units.

/** Returns how many characters of `text` come before the code unit `index`. */
export function codePoints(text, index) {
  return [...text.slice(0, index)].length;
}

/** Returns how many code units of `text` come before its character number `count`. */
export function codeUnits(text, count) {
  return [...text].slice(0, count).join("").length;
}

/**
 * Returns [from, to] in code units of the word at character `position`, at which the server could not read the filter,
 * or null if nothing but spaces follows: then the filter is not complete yet.
 */
export function errorSpan(text, position) {
  const from = codeUnits(text, position);
  if (from >= text.trimEnd().length) return null;
  return [from, from + (text.slice(from).match(/^\S+/)?.[0].length ?? 1)];
}

/** Returns the index after (step 1) or before (step -1) `index` among `length` offers; -1 is the field itself. */
export function nextIndex(index, step, length) {
  const positions = length + 1;
  return ((index + 1 + step + positions) % positions) - 1;
}

/** Returns an offer with the space that separates it from the text that follows. */
export function textToInsert(offer, following) {
  return offer + (following.startsWith(" ") ? "" : " ");
}

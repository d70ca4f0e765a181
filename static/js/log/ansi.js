// SGR (select graphic rendition), the escape codes for colours and text attributes. Styles are interned: equal styles
// are the same object, so they can be compared by identity.

const interned = new Map();

function intern(style) {
  const key = `${style.fg}|${style.bg}|${style.flags}`;
  if (!interned.has(key)) interned.set(key, Object.freeze(style));
  return interned.get(key);
}

export const BOLD = 1;
export const DIM = 2;
export const ITALIC = 4;
export const UNDERLINE = 8;
export const INVERSE = 16;
export const STRIKE = 32;

/**
 * `fg`, `bg`: null (the default colour), 0-15 (a colour of the theme) or "#rrggbb"; `flags`: a sum of the constants
 * above.
 */
export const PLAIN = intern({ fg: null, bg: null, flags: 0 });

const SET = { 1: BOLD, 2: DIM, 3: ITALIC, 4: UNDERLINE, 7: INVERSE, 9: STRIKE };
const CLEAR = { 21: BOLD, 22: BOLD | DIM, 23: ITALIC, 24: UNDERLINE, 27: INVERSE, 29: STRIKE };

/** Returns the style after `ESC [ params m`. Skips unknown codes. */
export function applySgr(style, params) {
  const codes = params.split(";").flatMap(splitColons);
  let { fg, bg, flags } = style;
  for (let index = 0; index < codes.length; index++) {
    const code = Number(codes[index] || 0);
    if (code === 0) [fg, bg, flags] = [null, null, 0];
    else if (SET[code]) flags |= SET[code];
    else if (CLEAR[code]) flags &= ~CLEAR[code];
    else if (code >= 30 && code <= 37) fg = code - 30;
    else if (code >= 90 && code <= 97) fg = code - 82;
    else if (code >= 40 && code <= 47) bg = code - 40;
    else if (code >= 100 && code <= 107) bg = code - 92;
    else if (code === 39) fg = null;
    else if (code === 49) bg = null;
    else if (code === 38 || code === 48 || code === 58) {
      // 58 is the colour of the underline, which is not shown.
      const [color, count] = parseExtendedColor(codes, index + 1);
      if (code === 38) fg = color ?? fg;
      else if (code === 48) bg = color ?? bg;
      index += count;
    }
  }
  return intern({ fg, bg, flags });
}

/**
 * Splits a code that has parts with colons: "38:5:9", "38:2:r:g:b", "38:2:space:r:g:b", "4:3" (curly), "4:0" (none).
 */
function splitColons(part) {
  const fields = part.split(":");
  if (fields.length === 1) return fields;
  if (fields[0] === "4") return [fields[1] === "0" ? "24" : "4"];
  if (!["38", "48", "58"].includes(fields[0])) return [fields[0]];
  if (fields[1] !== "2") return fields.slice(0, 3);
  return fields.length > 5 ? [...fields.slice(0, 2), ...fields.slice(3, 6)] : fields;
}

/** Reads what follows 38, 48 or 58. Returns [color or null, number of codes used]. */
function parseExtendedColor(codes, index) {
  if (codes[index] === "5") return [xtermColor(Number(codes[index + 1] || 0)), 2];
  if (codes[index] === "2") return [hexColor(codes.slice(index + 1, index + 4).map(Number)), 4];
  return [null, 0];
}

/** Returns one of the 256 colours of xterm; the theme defines the first 16. */
function xtermColor(index) {
  if (!(index >= 0 && index <= 255)) return null;
  if (index < 16) return index;
  if (index >= 232) return hexColor(Array(3).fill(8 + (index - 232) * 10));
  const cube = index - 16;
  return hexColor(
    [Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map((step) => (step ? 55 + step * 40 : 0)),
  );
}

function hexColor(rgb) {
  const valid = rgb.length === 3 && rgb.every((part) => part >= 0 && part <= 255);
  return valid ? `#${rgb.map((part) => part.toString(16).padStart(2, "0")).join("")}` : null;
}

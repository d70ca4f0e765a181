// SGR, the colour codes of a terminal. Styles are interned: equal looks are the same object.

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

/** `fg`, `bg`: null, 0-15, or "#rrggbb"; `flags`: a sum of the constants above. */
export const PLAIN = intern({ fg: null, bg: null, flags: 0 });

const SET = { 1: BOLD, 2: DIM, 3: ITALIC, 4: UNDERLINE, 7: INVERSE, 9: STRIKE };
const CLEAR = { 21: BOLD, 22: BOLD | DIM, 23: ITALIC, 24: UNDERLINE, 27: INVERSE, 29: STRIKE };

/** The style after `ESC [ params m`. Unknown codes are skipped. */
export function styled(style, params) {
  // "4:3" (curly underline) and "38:2::r:g:b" use colons inside one code.
  const codes = params.split(";").flatMap((part) => (part.startsWith("38:") || part.startsWith("48:") ? part.replace("::", ":").split(":") : [part.split(":")[0]]));
  let { fg, bg, flags } = style;
  for (let at = 0; at < codes.length; at++) {
    const code = Number(codes[at] || 0);
    if (code === 0) [fg, bg, flags] = [null, null, 0];
    else if (SET[code]) flags |= SET[code];
    else if (CLEAR[code]) flags &= ~CLEAR[code];
    else if (code >= 30 && code <= 37) fg = code - 30;
    else if (code >= 90 && code <= 97) fg = code - 82;
    else if (code >= 40 && code <= 47) bg = code - 40;
    else if (code >= 100 && code <= 107) bg = code - 92;
    else if (code === 39) fg = null;
    else if (code === 49) bg = null;
    else if (code === 38 || code === 48) {
      const [color, used] = extended(codes, at + 1);
      if (code === 38) fg = color ?? fg;
      else bg = color ?? bg;
      at += used;
    }
  }
  return intern({ fg, bg, flags });
}

/** [color, how many codes it took] of what follows 38 or 48. */
function extended(codes, at) {
  if (codes[at] === "5") return [palette(Number(codes[at + 1] || 0)), 2];
  if (codes[at] === "2") return [hex(codes.slice(at + 1, at + 4).map(Number)), 4];
  return [null, 0];
}

/** One of the 256 colours of xterm; the first 16 belong to the theme. */
function palette(index) {
  if (!(index >= 0 && index <= 255)) return null;
  if (index < 16) return index;
  if (index >= 232) return hex(Array(3).fill(8 + (index - 232) * 10));
  const cube = index - 16;
  return hex([Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map((step) => (step ? 55 + step * 40 : 0)));
}

function hex(rgb) {
  const valid = rgb.length === 3 && rgb.every((part) => part >= 0 && part <= 255);
  return valid ? `#${rgb.map((part) => part.toString(16).padStart(2, "0")).join("")}` : null;
}

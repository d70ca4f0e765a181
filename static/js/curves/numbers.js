// Values of metrics as people read them: four digits that count, and words for what is no number.

export const UNKNOWN = "–";
const DIGITS = 4;

export function number(value) {
  if (value === null || value === undefined) return UNKNOWN;
  if (typeof value === "string") return { NaN: "NaN", Infinity: "∞", "-Infinity": "−∞" }[value] ?? value;
  if (!Number.isFinite(value)) return number(String(value));
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e9) return value.toLocaleString("en").replace("-", "−");
  if (size >= 1000 && size < 1e6) return value.toFixed(0).replace("-", "−");
  const text = size >= 1e6 || size < 1e-4 ? value.toExponential(DIGITS - 1) : value.toPrecision(DIGITS);
  return trimmed(text).replace("e+", "e").replaceAll("-", "−");
}

/** From the lowest to the highest of some values, once where they read alike. */
export function span(values) {
  const known = values.filter((value) => Number.isFinite(value));
  if (!known.length) return values.length ? number(values.find((value) => value !== null) ?? null) : UNKNOWN;
  const [low, high] = [number(Math.min(...known)), number(Math.max(...known))];
  return low === high ? low : `${low} – ${high}`;
}

function trimmed(text) {
  const [digits, exponent] = text.split("e");
  const short = digits.includes(".") ? digits.replace(/\.?0+$/, "") : digits;
  return exponent === undefined ? short : `${short}e${exponent}`;
}

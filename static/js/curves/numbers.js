// Formats values of metrics: four significant digits, and symbols for what is not a number. The same as
// tracking/templatetags/figures.py.

import { UNKNOWN } from "../charts/units.js";

const DIGITS = 4;

/** `value`: a number, null (unknown), or "NaN", "Infinity", "-Infinity" as in the hub's JSON. */
export function formatNumber(value) {
  if (value === null || value === undefined) return UNKNOWN;
  if (typeof value === "string") return { NaN: "NaN", Infinity: "∞", "-Infinity": "−∞" }[value] ?? value;
  if (!Number.isFinite(value)) return formatNumber(String(value));
  const magnitude = Math.abs(value);
  // Adding 0 turns -0 into 0.
  if (Number.isInteger(value) && magnitude < 1e9) return (value + 0).toLocaleString("en").replace("-", "−");
  if (magnitude >= 1000 && magnitude < 1e6) return value.toFixed(0).replace("-", "−");
  const text = magnitude >= 1e6 || magnitude < 1e-4 ? value.toExponential(DIGITS - 1) : value.toPrecision(DIGITS);
  return trimZeros(text).replace("e+", "e").replaceAll("-", "−");
}

/** Returns the lowest and the highest value, "1 – 3", or one of them if both read alike. */
export function formatNumberRange(values) {
  const numbers = values.filter((value) => Number.isFinite(value));
  if (!numbers.length) return values.length ? formatNumber(values.find((value) => value !== null) ?? null) : UNKNOWN;
  const [low, high] = [formatNumber(Math.min(...numbers)), formatNumber(Math.max(...numbers))];
  return low === high ? low : `${low} – ${high}`;
}

function trimZeros(text) {
  const [digits, exponent] = text.split("e");
  const trimmed = digits.includes(".") ? digits.replace(/\.?0+$/, "") : digits;
  return exponent === undefined ? trimmed : `${trimmed}e${exponent}`;
}

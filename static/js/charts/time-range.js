// A span of time as the page's address has it: `?range=6h` ends now, `?from=…&to=…` (Unix seconds or ISO 8601) is
// fixed.

export const PRESETS = { "15m": 900, "1h": 3600, "6h": 21_600, "24h": 86_400, "7d": 604_800, "30d": 2_592_000 };
export const DEFAULT_PRESET = "1h";
const MIN_SPAN_S = 10;

/** Reads {preset} or {preset: null, from, to} from a query string; anything invalid gives the default. */
export function parseRange(search) {
  const params = new URLSearchParams(search);
  const [from, to] = [parseTime(params.get("from")), parseTime(params.get("to"))];
  return validRange(from !== null && to !== null ? { from, to } : { preset: params.get("range") });
}

/** Returns the range if it is valid, at least MIN_SPAN_S long and in whole seconds, or the default. */
export function validRange({ preset, from, to }) {
  if (Number.isFinite(from) && Number.isFinite(to) && to > from) {
    const middle = (from + to) / 2;
    const half = Math.max(to - from, MIN_SPAN_S) / 2;
    return { preset: null, from: Math.round(middle - half), to: Math.round(middle + half) };
  }
  return { preset: Object.hasOwn(PRESETS, preset ?? "") ? preset : DEFAULT_PRESET };
}

/** Returns the query parameters of a range. */
export function rangeQuery(range) {
  return range.preset ? { range: range.preset } : { from: range.from, to: range.to };
}

function parseTime(text) {
  if (!text) return null;
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Date.parse(text) / 1000;
  return Number.isFinite(value) ? value : null;
}

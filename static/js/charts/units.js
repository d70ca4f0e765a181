// Formats values with units: bytes in powers of 1024, rates in powers of 1000, and a dash for unknown values.

const UNIT_STEPS = {
  B: [1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]],
  "B/s": [1000, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]],
  MHz: [1000, ["MHz", "GHz"]],
};
export const UNKNOWN = "–";

/** Returns {divisor, unit} with which `largest` becomes a number below a thousand or so. */
export function unitScale(unit, largest) {
  const [base, units] = UNIT_STEPS[unit] ?? [1, [unit]];
  let divisor = 1;
  let at = 0;
  while (at < units.length - 1 && Math.abs(largest) / divisor >= base) {
    divisor *= base;
    at += 1;
  }
  return { divisor, unit: units[at] };
}

/** Returns a value with its unit: "87 %", "70.2 GiB", "–". */
export function formatValue(value, unit) {
  if (value === null || value === undefined || !Number.isFinite(value)) return UNKNOWN;
  const { divisor, unit: scaled } = unitScale(unit, value);
  return `${roundNumber(value / divisor, divisor === 1 && unit.startsWith("B"))} ${scaled}`.trimEnd();
}

/** Returns the lowest and the highest value with their unit: "34–97 %", or "97 %" if both read alike. */
export function formatValueRange(values, unit) {
  const numbers = values.filter((value) => Number.isFinite(value) && value !== null);
  if (!numbers.length) return UNKNOWN;
  const low = Math.min(...numbers);
  const high = Math.max(...numbers);
  const { divisor, unit: scaled } = unitScale(unit, high);
  const [from, to] = [roundNumber(low / divisor), roundNumber(high / divisor)];
  return `${from === to ? to : `${from}–${to}`} ${scaled}`.trimEnd();
}

function roundNumber(value, isWhole = false) {
  const size = Math.abs(value);
  if (isWhole || size >= 100 || size === 0) return String(Math.round(value));
  return String(Number(value.toFixed(size >= 10 ? 1 : 2)));
}

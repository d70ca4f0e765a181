// Numbers as people read them: bytes in powers of 1024, rates in powers of 1000, and a dash for what is not known.

const STEPS = {
  B: [1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]],
  "B/s": [1000, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]],
  MHz: [1000, ["MHz", "GHz"]],
};
export const UNKNOWN = "–";

/** What to divide by, and the unit then, so that `most` reads as a number below a thousand or so. */
export function scale(unit, most) {
  const [base, units] = STEPS[unit] ?? [1, [unit]];
  let by = 1;
  let at = 0;
  while (at < units.length - 1 && Math.abs(most) / by >= base) {
    by *= base;
    at += 1;
  }
  return { by, unit: units[at] };
}

/** A value with its unit: "87 %", "70.2 GiB", "–". */
export function shown(value, unit) {
  if (value === null || value === undefined || !Number.isFinite(value)) return UNKNOWN;
  const { by, unit: scaled } = scale(unit, value);
  return `${number(value / by, by === 1 && unit.startsWith("B"))} ${scaled}`.trimEnd();
}

/** The lowest and the highest of some values, once: "34–97 %". */
export function span(values, unit) {
  const known = values.filter((value) => Number.isFinite(value) && value !== null);
  if (!known.length) return UNKNOWN;
  const low = Math.min(...known);
  const high = Math.max(...known);
  const { by, unit: scaled } = scale(unit, high);
  const [from, to] = [number(low / by), number(high / by)];
  return `${from === to ? to : `${from}–${to}`} ${scaled}`.trimEnd();
}

function number(value, isWhole = false) {
  const size = Math.abs(value);
  if (isWhole || size >= 100 || size === 0) return String(Math.round(value));
  return String(Number(value.toFixed(size >= 10 ? 1 : 2)));
}

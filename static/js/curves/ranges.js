// The ranges of a chart's axes that its lines need.

import { metricOfAxis } from "./axes.js";

/** Returns the span of the view, or that of all lines. A logarithmic axis begins where x is above 0. */
export function xRange(lines, { from, to, isLog }) {
  const xs = lines.flatMap((line) => line.xEnds);
  let [low, high] = [from ?? Math.min(...xs), to ?? Math.max(...xs)];
  if (isLog && low <= 0) low = Math.min(...lines.map((line) => line.x.find((x) => x > 0) ?? Infinity), high);
  if (isLog && !(low > 0)) return { from: 1, to: 10 };
  if (high <= low) [low, high] = isLog ? [low / 2, low * 2] : [low - 0.5, low + 0.5];
  return { from: low, to: high };
}

/** Returns the range of the y axis for the points between `from` and `to`, as exponents on a logarithmic axis. */
export function yRange(lines, { from, to, isLogY, smoothing }) {
  let [low, high] = [Infinity, -Infinity];
  const include = (value) => {
    if (value === null || !Number.isFinite(value) || (isLogY && value <= 0)) return;
    low = Math.min(low, value);
    high = Math.max(high, value);
  };
  for (const line of lines) {
    const rows = line.low ? [line.low, line.high] : smoothing ? [line.y, line.smoothedValues(smoothing)] : [line.y];
    for (let index = 0; index < line.x.length; index += 1) {
      // Lines are drawn to the points next to the span, so include these.
      if ((line.x[index + 1] ?? line.x[index]) < from || (line.x[index - 1] ?? line.x[index]) > to) continue;
      for (const row of rows) include(row[index]);
    }
  }
  if (!Number.isFinite(high)) return [0, 1];
  if (isLogY) [low, high] = [Math.log10(low), Math.log10(high)];
  const margin = high > low ? (high - low) * 0.06 : Math.max(Math.abs(high) * 0.1, isLogY ? 0.5 : 1e-9);
  return [low - margin, high + margin];
}

/** Returns the span [from, to] to zoom into, in whole steps or milliseconds, and never empty. */
export function zoomSpan(axis, from, to) {
  if (metricOfAxis(axis) !== null) {
    // Six digits of the span's length: the values of a metric may be of any size.
    const digits = Math.min(100, Math.max(0, 6 - Math.ceil(Math.log10(to - from || 1))));
    return [Number(from.toFixed(digits)), Number(to.toFixed(digits))];
  }
  const unit = axis === "step" ? 1 : 0.001;
  const round = (value) => Number(value.toFixed(3));
  const low = axis === "step" ? Math.floor(from) : round(from);
  const high = axis === "step" ? Math.ceil(to) : round(to);
  return [low, high > low ? high : round(low + unit)];
}

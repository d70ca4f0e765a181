// What is drawn of a panel: its lines, the bands between mean and maximum, and the line of a limit. Values are
// divided by `divisor`, which gives them the unit of the axis.

import { withOpacity } from "./palette.js";

export const MAX_BANDS = 3; // with more lines, bands on top of each other are unreadable
const SPARSE = 4; // fewer points than this are drawn as points, too

/** Returns the bands of lines if there are few: closed shapes, one per stretch without a gap. */
export function bandTraces(lines, divisor) {
  if (lines.length > MAX_BANDS) return [];
  return lines.map((line) => {
    const [x, y] = bandOutline(line, divisor);
    return {
      mode: "lines",
      x,
      y,
      fill: "toself",
      fillcolor: withOpacity(line.color, 0.16),
      line: { width: 0 },
    };
  });
}

export function lineTrace({ source, row, color, dash }, divisor) {
  const y = divisor === 1 ? row.mean : row.mean.map((value) => (value === null ? null : value / divisor));
  const isSparse = row.mean.length < SPARSE;
  return {
    mode: isSparse ? "lines+markers" : "lines",
    x: source.times,
    y,
    line: { color, dash, width: 1.5 },
    marker: { color, size: 4 },
  };
}

export function limitTrace(view, limit) {
  return {
    mode: "lines",
    x: [view.from, view.to],
    y: [limit, limit],
    line: { color: view.palette.muted, dash: "dot", width: 1 },
  };
}

/** Returns [x, y] of the band's outline: along the maxima, and back along the means. */
export function bandOutline({ source, row }, divisor) {
  const [x, y] = [[], []];
  let stretchStart = -1;
  for (let index = 0; index <= row.mean.length; index += 1) {
    const hasValue = index < row.mean.length && row.mean[index] !== null && row.max[index] !== null;
    if (hasValue && stretchStart < 0) stretchStart = index;
    if (hasValue || stretchStart < 0) continue;
    for (let point = stretchStart; point < index; point += 1) {
      x.push(source.times[point]);
      y.push(row.max[point] / divisor);
    }
    for (let point = index - 1; point >= stretchStart; point -= 1) {
      x.push(source.times[point]);
      y.push(row.mean[point] / divisor);
    }
    x.push(null);
    y.push(null);
    stretchStart = -1;
  }
  return [x, y];
}

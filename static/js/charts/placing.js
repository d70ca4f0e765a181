// Where a value lies on the axis of a chart. view: {from, to, width, isLog}; a share runs from 0 (left) to 1.

import { MARGIN } from "./panel.js";

export function plotWidth(view) {
  return Math.max(1, view.width - MARGIN.l - MARGIN.r);
}

export function shareOf(at, { from, to, isLog }) {
  return isLog ? Math.log(at / from) / Math.log(to / from) : (at - from) / (to - from);
}

export function valueAt(share, { from, to, isLog }) {
  return isLog ? from * (to / from) ** share : from + share * (to - from);
}

/** Pixels from the chart's left edge. */
export function xOf(at, view) {
  return MARGIN.l + shareOf(at, view) * plotWidth(view);
}

/** The value under a pixel; beyond the axis, its end. */
export function atX(x, view) {
  return valueAt(Math.min(Math.max(x - MARGIN.l, 0), plotWidth(view)) / plotWidth(view), view);
}

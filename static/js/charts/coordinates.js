// Converts between values on a chart's x axis, fractions of it (0 is left, 1 is right) and pixels.
// `view`: {from, to, width, isLog}.

import { MARGIN } from "./panel.js";

export function plotWidth(view) {
  return Math.max(1, view.width - MARGIN.l - MARGIN.r);
}

export function fractionOf(value, { from, to, isLog }) {
  return isLog ? Math.log(value / from) / Math.log(to / from) : (value - from) / (to - from);
}

export function valueAtFraction(fraction, { from, to, isLog }) {
  return isLog ? from * (to / from) ** fraction : from + fraction * (to - from);
}

/** Returns the pixels of a value from the chart's left edge. */
export function xOfValue(value, view) {
  return MARGIN.l + fractionOf(value, view) * plotWidth(view);
}

/** Returns the value under a pixel; beyond the axis, its nearest end. */
export function valueAtX(x, view) {
  return valueAtFraction(Math.min(Math.max(x - MARGIN.l, 0), plotWidth(view)) / plotWidth(view), view);
}

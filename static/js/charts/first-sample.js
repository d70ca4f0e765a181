// Where the time axis begins for machines that are younger than the span: at their first sample. A gap at the beginning
// of a span stays a gap if the machine was there before.

import { formatMoment } from "./time-axis.js";

/** Returns the first of `times` at which one of the lists of values has one, or null. */
export function firstTime(times, lists) {
  const index = times.findIndex((_, at) => lists.some((values) => values[at] !== null && values[at] !== undefined));
  return index < 0 ? null : times[index];
}

/** Returns the time of the first value in an answer about a node, or null. */
export function firstTimeOfNode({ times, host = {}, gpus }) {
  const curves = [{ series: host }, ...gpus].flatMap(({ series }) => Object.values(series));
  return firstTime(
    times,
    curves.map(({ mean }) => mean),
  );
}

/**
 * Returns the begin of the axis. `from`: that of the span; `addedAt`: when the first of the machines was added;
 * `first`: the time of the first sample in the span, or null.
 */
export function axisStart(from, addedAt, first) {
  return addedAt > from && first !== null && first > from ? first : from;
}

/** Says in `element`, if there is one, that the axis of a span of `span` seconds begins at `start`. */
export function showBegin(element, isLater, start, span) {
  if (!element) return;
  element.hidden = !isLater;
  element.textContent = isLater ? `Begins at the first sample, ${formatMoment(start, span)}.` : "";
}

/** Returns the answer of a heat map from the time `start` on. */
export function fromStart(answer, start) {
  const skipped = answer.times.findIndex((at) => at >= start);
  if (skipped <= 0) return answer;
  const rows = answer.rows.map((row) => ({ ...row, mean: row.mean.slice(skipped) }));
  return { ...answer, times: answer.times.slice(skipped), rows };
}

// One line of a chart: a metric of one run, or the mean of a group of runs with the range of their values.

import { movingAverage } from "./moving-average.js";

const MARGIN_SHARE = 0.02; // of the axis: so far beyond its ends a line still has its last value

export class CurveLine {
  /** `answer`: a line or a band of the hub's answer. `id`: the id of its run, or group:VALUE. */
  constructor(answer, id) {
    Object.assign(this, { id, key: answer.key, answer, low: answer.low, high: answer.high, marks: answer.marks ?? [] });
    this.x = answer.x;
    this.y = answer.y ?? answer.mean;
    this.traces = []; // empty until it is drawn
    // Over another metric, a line may go back and forth.
    this.isAscending = this.x.every((x, index) => index === 0 || x >= this.x[index - 1]);
    this.hubAverage = answer.smooth ? { values: answer.smooth, weight: answer.weight } : null;
  }

  get isEmpty() {
    return !this.x.length && !this.marks.length;
  }

  /** The least and the greatest x of its points and marks; empty if it has none. */
  get xEnds() {
    if (this.isEmpty) return [];
    const points = this.isAscending ? [this.x[0], this.x.at(-1)].filter((x) => x !== undefined) : this.x;
    const all = [...points, ...[this.marks[0], this.marks.at(-1)].filter(Boolean).map(([x]) => x)];
    return [all.reduce((low, x) => Math.min(low, x)), all.reduce((high, x) => Math.max(high, x))];
  }

  /**
   * Returns the y values to draw: the hub's average if it has this weight, otherwise one of the points that are here.
   */
  smoothedValues(weight) {
    if (!weight || this.low) return this.y;
    if (this.hubAverage?.weight === weight) return this.hubAverage.values;
    if (this.ownAverage?.weight !== weight) this.ownAverage = { weight, values: movingAverage(this.y, weight) };
    return this.ownAverage.values;
  }

  /** Returns [x, y] with a gap at each mark, where a value is not a number. */
  withGaps(values) {
    if (!this.marks.length || !this.isAscending) return [this.x, values];
    const [x, y] = [[], []];
    let next = 0;
    for (let index = 0; index <= this.x.length; index += 1) {
      const isLast = index === this.x.length;
      for (; next < this.marks.length && (isLast || this.marks[next][0] < this.x[index]); next += 1) {
        if (y.at(-1) === null) continue;
        x.push(this.marks[next][0]);
        y.push(null);
      }
      if (isLast) break;
      x.push(this.x[index]);
      y.push(values[index]);
    }
    return [x, y];
  }

  /** Returns {value, raw, x, spread} of the point or mark nearest to `at`, or null beyond the line. */
  valueAt(at, view, weight) {
    const index = this.isAscending ? nearestIndex(this.x, at) : nearestOfAll(this.x, at);
    const mark = nearestIndex(
      this.marks.map(([x]) => x),
      at,
    );
    const isMark = mark >= 0 && (index < 0 || Math.abs(this.marks[mark][0] - at) < Math.abs(this.x[index] - at));
    const x = isMark ? this.marks[mark][0] : this.x[index];
    if (x === undefined || this.#isBeyond(at, view)) return null;
    if (isMark) return { value: this.marks[mark][1], raw: null, x };
    return {
      value: this.smoothedValues(weight)[index],
      raw: this.y[index],
      x,
      spread: this.#hasSpread ? this.high[index] - this.y[index] : null,
    };
  }

  /** Whether there is a spread: a single run has none. */
  get #hasSpread() {
    return Boolean(this.high) && this.answer.runs.length > 1;
  }

  #isBeyond(at, { from, to }) {
    const room = (to - from) * MARGIN_SHARE;
    const [low, high] = this.xEnds;
    return at < low - room || at > high + room;
  }
}

/** Returns the index of the number nearest to `at` in ascending `numbers`, or -1 if there is none. */
export function nearestIndex(numbers, at) {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < at) low = middle + 1;
    else high = middle;
  }
  if (low === numbers.length) return numbers.length - 1;
  return low > 0 && at - numbers[low - 1] < numbers[low] - at ? low - 1 : low;
}

function nearestOfAll(numbers, at) {
  let nearest = -1;
  for (let index = 0; index < numbers.length; index += 1) {
    // Of equally near points the last one is shown: it is the newest.
    if (nearest < 0 || Math.abs(numbers[index] - at) <= Math.abs(numbers[nearest] - at)) nearest = index;
  }
  return nearest;
}

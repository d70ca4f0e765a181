// One line of a chart: a metric of one run, or the mean of a group of runs with its spread.

import { smoothed } from "./smoothing.js";

const BEYOND = 0.02; // of the axis: so far beside its ends a line still tells its last value

export class Line {
  /** `told`: a line or a band of the hub's answer; `id`: whose it is (a run's id, or group:VALUE). */
  constructor(told, id) {
    Object.assign(this, { id, key: told.key, told, low: told.low, high: told.high, marks: told.marks ?? [] });
    this.x = told.x;
    this.y = told.y ?? told.mean;
    this.traces = []; // until it is drawn, for which it may have to wait
    this.exact = told.smooth ? { values: told.smooth, weight: told.weight } : null;
  }

  get isEmpty() {
    return !this.x.length && !this.marks.length;
  }

  /** What is drawn on top: the hub's average where it is of this weight, else one of the points that are here. */
  shown(weight) {
    if (!weight || this.low) return this.y;
    if (this.exact?.weight === weight) return this.exact.values;
    if (this.made?.weight !== weight) this.made = { weight, values: smoothed(this.y, weight) };
    return this.made.values;
  }

  /** [x, y] with a gap wherever a value is no number. */
  broken(values) {
    if (!this.marks.length) return [this.x, values];
    const [x, y] = [[], []];
    let next = 0;
    for (let place = 0; place <= this.x.length; place += 1) {
      const isLast = place === this.x.length;
      for (; next < this.marks.length && (isLast || this.marks[next][0] < this.x[place]); next += 1) {
        if (y.at(-1) === null) continue;
        x.push(this.marks[next][0]);
        y.push(null);
      }
      if (isLast) break;
      x.push(this.x[place]);
      y.push(values[place]);
    }
    return [x, y];
  }

  /** {value, raw, x} nearest to `at`; null where the line is not. */
  at(at, view, weight) {
    const place = nearest(this.x, at);
    const mark = nearest(this.marks.map(([x]) => x), at);
    const isMark = mark >= 0 && (place < 0 || Math.abs(this.marks[mark][0] - at) < Math.abs(this.x[place] - at));
    const x = isMark ? this.marks[mark][0] : this.x[place];
    if (x === undefined || this.#isBeyond(at, view)) return null;
    if (isMark) return { value: this.marks[mark][1], raw: null, x };
    return { value: this.shown(weight)[place], raw: this.y[place], x, spread: this.#isSpread ? this.high[place] - this.y[place] : null };
  }

  /** One run alone has none. */
  get #isSpread() {
    return Boolean(this.high) && this.told.runs.length > 1;
  }

  #isBeyond(at, { from, to }) {
    const room = (to - from) * BEYOND;
    const ends = [this.x[0], this.x.at(-1), this.marks[0]?.[0], this.marks.at(-1)?.[0]].filter((x) => x !== undefined);
    return at < Math.min(...ends) - room || at > Math.max(...ends) + room;
  }
}

/** The place of the number nearest to `at` in ascending ones; -1 where there is none. */
export function nearest(numbers, at) {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < at) low = middle + 1;
    else high = middle;
  }
  if (low === numbers.length) return numbers.length - 1;
  return low > 0 && at - numbers[low - 1] < numbers[low] - at ? low - 1 : low;
}

// Ticks of a time axis in the reader's own zone, which plotly's dates (always UTC) cannot give; and times in words.

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;
const STEPS = [
  1, 2, 5, 10, 15, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
  HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY,
];
const LEAST_PX = 62;
const two = (value) => String(value).padStart(2, "0");
const month = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });

/** [[Unix seconds, label]] for an axis of `width` pixels. */
export function ticks(from, to, width) {
  const most = Math.max(2, Math.floor(width / LEAST_PX));
  const step = STEPS.find((candidate) => (to - from) / candidate <= most) ?? STEPS.at(-1);
  const found = [];
  for (let at = first(from, step); at <= to && found.length < 50; at = next(at, step)) {
    if (at >= from) found.push([at, label(at, step)]);
  }
  return found;
}

/** A moment exactly, for a cross-hair: the day only where the axis shows more than one. */
export function moment(at, span) {
  const date = new Date(at * 1000);
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return span > 12 * HOUR ? `${month.format(date)} ${time}` : time;
}

function first(from, step) {
  const date = new Date(from * 1000);
  const midnight = new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime() / 1000;
  return step >= DAY ? midnight : midnight + Math.ceil((from - midnight) / step) * step;
}

function next(at, step) {
  if (step < DAY) return at + step;
  // A day may have 23 or 25 hours.
  const date = new Date(at * 1000);
  return new Date(date.getFullYear(), date.getMonth(), date.getDate() + step / DAY).getTime() / 1000;
}

function label(at, step) {
  const date = new Date(at * 1000);
  const isMidnight = !date.getHours() && !date.getMinutes() && !date.getSeconds();
  if (step >= DAY || (isMidnight && step >= HOUR)) return month.format(date);
  const time = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return step < MINUTE ? `${time}:${two(date.getSeconds())}` : time;
}

// Ticks of a time axis in the reader's time zone (Plotly's date axes are always in UTC), and times as text.

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;
const TICK_STEPS_S = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800,
  1_209_600, 2_592_000,
];
const MIN_TICK_PX = 62;
const twoDigits = (value) => String(value).padStart(2, "0");
const dateFormat = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });

/** Returns ticks [Unix seconds, label] for an axis of `width` pixels. */
export function timeTicks(from, to, width) {
  const maxTicks = Math.max(2, Math.floor(width / MIN_TICK_PX));
  const step = TICK_STEPS_S.find((candidate) => (to - from) / candidate <= maxTicks) ?? TICK_STEPS_S.at(-1);
  const ticks = [];
  for (let at = firstTick(from, step); at <= to && ticks.length < 50; at = nextTick(at, step)) {
    if (at >= from) ticks.push([at, tickLabel(at, step)]);
  }
  return ticks;
}

/** Returns the time of day to the second, with the day if the axis is longer than 12 hours. */
export function formatMoment(at, span) {
  const date = new Date(at * 1000);
  const time = `${twoDigits(date.getHours())}:${twoDigits(date.getMinutes())}:${twoDigits(date.getSeconds())}`;
  return span > 12 * HOUR ? `${dateFormat.format(date)} ${time}` : time;
}

function firstTick(from, step) {
  const date = new Date(from * 1000);
  const midnight = new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime() / 1000;
  return step >= DAY ? midnight : midnight + Math.ceil((from - midnight) / step) * step;
}

function nextTick(at, step) {
  if (step < DAY) return at + step;
  // With daylight saving time a day may have 23 or 25 hours.
  const date = new Date(at * 1000);
  return new Date(date.getFullYear(), date.getMonth(), date.getDate() + step / DAY).getTime() / 1000;
}

function tickLabel(at, step) {
  const date = new Date(at * 1000);
  const isMidnight = !date.getHours() && !date.getMinutes() && !date.getSeconds();
  if (step >= DAY || (isMidnight && step >= HOUR)) return dateFormat.format(date);
  const time = `${twoDigits(date.getHours())}:${twoDigits(date.getMinutes())}`;
  return step < MINUTE ? `${time}:${twoDigits(date.getSeconds())}` : time;
}

// The x axes of curves, and how their ticks and values are formatted: step, time, relative (since the start of the
// run), or another metric, which is named metrics.NAME.

import { formatMoment, timeTicks } from "../charts/time-axis.js";
import { formatDuration } from "../formats.js";
import { formatNumber } from "./numbers.js";

const METRIC_PREFIX = "metrics.";

const MIN_TICK_PX = 62;
const TICK_STEPS_S = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200,
  10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 1_209_600, 2_592_000,
];

const AXES = {
  step: {
    title: "Step",
    format: (at) => `step ${Math.round(at).toLocaleString("en")}`,
    /** Plotly makes them: whole steps, with k and M. */
    ticks: () => ({ nticks: 5, tickformat: "~s" }),
  },
  time: {
    title: "Time",
    format: (at, span) => formatMoment(at, span),
    ticks: ({ from, to }, width) => tickArray(timeTicks(from, to, width)),
  },
  relative: {
    title: "Time since start",
    format: (at) => formatElapsed(at),
    ticks: ({ from, to, isLog }, width) =>
      isLog ? { nticks: 5, tickformat: "~s", ticksuffix: " s" } : tickArray(relativeTicks(from, to, width)),
  },
};

/** Returns {title, format(value, span), ticks(view, width)} of an axis. */
export function axisOf(name) {
  const key = metricOfAxis(name);
  if (key === null) return AXES[name];
  return {
    title: key,
    format: (at) => `${key} ${formatNumber(at)}`,
    ticks: () => ({ nticks: 5, tickformat: "~g" }),
  };
}

/** Returns the metric on an axis of this name, or null if the axis is not a metric. */
export function metricOfAxis(name) {
  return name.startsWith(METRIC_PREFIX) ? name.slice(METRIC_PREFIX.length) : null;
}

export function axisOfMetric(key) {
  return METRIC_PREFIX + key;
}

export function isAxisName(name) {
  return Object.hasOwn(AXES, name) || Boolean(metricOfAxis(name ?? ""));
}

function tickArray(ticks) {
  return { tickmode: "array", tickvals: ticks.map(([at]) => at), ticktext: ticks.map(([, label]) => label) };
}

/** Returns ticks [seconds since the start, label] for an axis of `width` pixels. */
export function relativeTicks(from, to, width) {
  const maxTicks = Math.max(2, Math.floor(width / MIN_TICK_PX));
  const step =
    TICK_STEPS_S.find((candidate) => (to - from) / candidate <= maxTicks) ??
    Math.ceil((to - from) / maxTicks / 86_400) * 86_400;
  const ticks = [];
  for (let index = Math.ceil(from / step); index * step <= to && ticks.length < 50; index += 1)
    ticks.push([index * step, tickLabel(index * step, step)]);
  return ticks;
}

/** Formats all ticks in the unit of the step: 1.5 h, 2 h. */
function tickLabel(at, step) {
  if (at === 0) return "0";
  const [divisor, unit] =
    step >= 86_400 ? [86_400, "d"] : step >= 1800 ? [3600, "h"] : step >= 60 ? [60, "min"] : [1, "s"];
  return `${Number((at / divisor).toFixed(3))} ${unit}`.replace("-", "−");
}

function formatElapsed(at) {
  if (at < 0) return `−${formatElapsed(-at)}`;
  return at < 60 ? `${Number(at.toFixed(2))} s` : formatDuration(at);
}

// The three axes that curves can be drawn along: how their ticks and moments read.

import { moment, ticks } from "../charts/timeaxis.js";
import { duration } from "../formats.js";

const LEAST_PX = 62;
const STEPS_S = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600,
  43_200, 86_400, 172_800, 604_800, 1_209_600, 2_592_000,
];

export const AXIS = {
  step: {
    title: "Step",
    moment: (at) => `step ${Math.round(at).toLocaleString("en")}`,
    /** Plotly's own: whole steps, with k and M. */
    ticks: () => ({ nticks: 5, tickformat: "~s" }),
  },
  time: {
    title: "Time",
    moment: (at, span) => moment(at, span),
    ticks: ({ from, to }, width) => listed(ticks(from, to, width)),
  },
  relative: {
    title: "Since the start",
    moment: (at) => since(at),
    ticks: ({ from, to, isLog }, width) => (isLog ? { nticks: 5, tickformat: "~s", ticksuffix: " s" } : listed(sinceTicks(from, to, width))),
  },
};

function listed(found) {
  return { tickmode: "array", tickvals: found.map(([at]) => at), ticktext: found.map(([, label]) => label) };
}

export function sinceTicks(from, to, width) {
  const most = Math.max(2, Math.floor(width / LEAST_PX));
  const step = STEPS_S.find((candidate) => (to - from) / candidate <= most) ?? Math.ceil((to - from) / most / 86_400) * 86_400;
  const found = [];
  for (let place = Math.ceil(from / step); place * step <= to && found.length < 50; place += 1) found.push([place * step, label(place * step, step)]);
  return found;
}

/** In the unit of the step, so that ticks read alike: 1.5 h, 2 h. */
function label(at, step) {
  if (at === 0) return "0";
  const [by, unit] = step >= 86_400 ? [86_400, "d"] : step >= 1800 ? [3600, "h"] : step >= 60 ? [60, "min"] : [1, "s"];
  return `${Number((at / by).toFixed(3))} ${unit}`.replace("-", "−");
}

function since(at) {
  if (at < 0) return `−${since(-at)}`;
  return at < 60 ? `${Number(at.toFixed(2))} s` : duration(at);
}

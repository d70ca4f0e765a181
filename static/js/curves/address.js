// The state of the curves, kept in the page's address so that a link shows a colleague the same.
//
// axis (step, time, relative), smoothing (0 to 0.999), logx and logy (1), q (part of a metric's name), keys (only these
// metrics), hide (numbers of runs), wide (metrics, may be repeated), closed and opened (groups, may be repeated), from
// and to (a span of the axis), span (FROM:TO:AXIS, a span of another axis; may be repeated), events (1 or 0, if not as
// usual), group (params.lr).

import { isAxisName } from "./axes.js";

export const AXIS_NAMES = ["step", "time", "relative"];
const MAX_SMOOTHING = 0.999;
const FLAGS = ["logx", "logy"];
const LISTS = ["wide", "closed", "opened"];
const SPAN = /^([^:]+):([^:]+):(.+)$/s;

/**
 * Reads the state from a query string. Ignores invalid values. `spans`: {axis: [from, to]}. `events`: whether they are
 * shown, or null: as usual.
 */
export function readState(search = location.search) {
  const params = new URLSearchParams(search);
  const smoothing = Number(params.get("smoothing"));
  const axis = AXIS_NAMES.includes(params.get("axis")) ? params.get("axis") : AXIS_NAMES[0];
  return {
    axis,
    smoothing: smoothing > 0 && smoothing <= MAX_SMOOTHING ? smoothing : 0,
    logx: params.get("logx") === "1",
    logy: params.get("logy") === "1",
    q: params.get("q") ?? "",
    group: params.get("group") ?? "",
    keys: splitCommas(params.get("keys")),
    hide: splitCommas(params.get("hide")),
    wide: params.getAll("wide"),
    closed: params.getAll("closed"),
    opened: params.getAll("opened"),
    spans: readSpans(params, axis),
    events: { 0: false, 1: true }[params.get("events")] ?? null,
  };
}

/** Writes the state into the page's address. `isStep`: the browser's Back button undoes it. */
export function writeState(state, { isStep = false } = {}) {
  const address = withState(location.href, state);
  if (address === location.pathname + location.search + location.hash) return;
  if (isStep) history.pushState(history.state, "", address);
  else history.replaceState(history.state, "", address);
  document.dispatchEvent(new CustomEvent("th:address"));
}

/** Returns the path, query and fragment of `href` with this state. Values that equal the defaults are left out. */
export function withState(href, state) {
  const url = new URL(href);
  const setParam = (name, value) => (value ? url.searchParams.set(name, value) : url.searchParams.delete(name));
  setParam("axis", state.axis === AXIS_NAMES[0] ? "" : state.axis);
  setParam("smoothing", state.smoothing ? String(state.smoothing) : "");
  for (const name of FLAGS) setParam(name, state[name] ? "1" : "");
  for (const name of ["q", "group"]) setParam(name, state[name]);
  for (const name of ["keys", "hide"]) setParam(name, state[name].join(","));
  const [from, to] = state.spans[state.axis] ?? ["", ""];
  setParam("from", String(from));
  setParam("to", String(to));
  url.searchParams.delete("span");
  for (const [axis, span] of Object.entries(state.spans)) {
    if (axis !== state.axis) url.searchParams.append("span", [...span, axis].join(":"));
  }
  setParam("events", state.events === null ? "" : String(Number(state.events)));
  for (const name of LISTS) {
    url.searchParams.delete(name);
    for (const value of state[name]) url.searchParams.append(name, value);
  }
  // Commas and colons are easier to read than %2C and %3A, and mean the same.
  return url.pathname + url.search.replaceAll("%2C", ",").replaceAll("%3A", ":") + url.hash;
}

function readSpans(params, axis) {
  const others = params.getAll("span").map((text) => text.match(SPAN)?.slice(1) ?? []);
  const all = [[params.get("from"), params.get("to"), axis], ...others.filter(([, , other]) => other !== axis)];
  return Object.fromEntries(
    all
      .filter(([from, to, name]) => from && to && isAxisName(name))
      .map(([from, to, name]) => [name, [Number(from), Number(to)]])
      .filter(([, [from, to]]) => Number.isFinite(from) && Number.isFinite(to) && from < to),
  );
}

function splitCommas(text) {
  return (text ?? "").split(",").filter(Boolean);
}

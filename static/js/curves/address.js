// The state of the curves, kept in the page's address so that a link shows a colleague the same.
//
// axis (step, time, relative), smoothing (0 to 0.999), logx and logy (1), q (part of a metric's name), keys (only these
// metrics), hide (numbers of runs), wide (metrics, may be repeated), closed and opened (groups, may be repeated), from
// and to (a span of the axis), group (params.lr).

export const AXIS_NAMES = ["step", "time", "relative"];
const MAX_SMOOTHING = 0.999;
const FLAGS = ["logx", "logy"];
const LISTS = ["wide", "closed", "opened"];
const SPANS = ["from", "to"];

/** Reads the state from a query string. Ignores invalid values. */
export function readState(search = location.search) {
  const params = new URLSearchParams(search);
  const [from, to] = SPANS.map((name) => (params.get(name) ? Number(params.get(name)) : null));
  const isSpan = Number.isFinite(from) && Number.isFinite(to) && from !== null && to !== null && from < to;
  const smoothing = Number(params.get("smoothing"));
  return {
    axis: AXIS_NAMES.includes(params.get("axis")) ? params.get("axis") : AXIS_NAMES[0],
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
    from: isSpan ? from : null,
    to: isSpan ? to : null,
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
  for (const name of SPANS) setParam(name, state[name] === null ? "" : String(state[name]));
  for (const name of LISTS) {
    url.searchParams.delete(name);
    for (const value of state[name]) url.searchParams.append(name, value);
  }
  // Commas are easier to read than %2C, and mean the same.
  return url.pathname + url.search.replaceAll("%2C", ",") + url.hash;
}

function splitCommas(text) {
  return (text ?? "").split(",").filter(Boolean);
}

// What is shown of curves, kept in the page's address so that a link shows a colleague the same.
//
// axis (step, time, relative), smoothing (0 to 0.999), logx, logy (1), q (part of a metric's name), keys (only these), hide (numbers of
// runs), wide and closed (metrics, groups; each may be there often), from and to (a span of the axis), group (params.lr).

export const AXES = ["step", "time", "relative"];
const MOST_SMOOTHING = 0.999;
const FLAGS = ["logx", "logy"];
const LISTS = ["wide", "closed", "opened"];
const SPANS = ["from", "to"];

/** `search`: a query string. What makes no sense there is as if it were not. */
export function read(search = location.search) {
  const asked = new URLSearchParams(search);
  const [from, to] = SPANS.map((name) => (asked.get(name) ? Number(asked.get(name)) : null));
  const isSpan = Number.isFinite(from) && Number.isFinite(to) && from !== null && to !== null && from < to;
  const smoothing = Number(asked.get("smoothing"));
  return {
    axis: AXES.includes(asked.get("axis")) ? asked.get("axis") : AXES[0],
    smoothing: smoothing > 0 && smoothing <= MOST_SMOOTHING ? smoothing : 0,
    logx: asked.get("logx") === "1", logy: asked.get("logy") === "1",
    q: asked.get("q") ?? "", group: asked.get("group") ?? "",
    keys: commas(asked.get("keys")), hide: commas(asked.get("hide")),
    wide: asked.getAll("wide"), closed: asked.getAll("closed"), opened: asked.getAll("opened"),
    from: isSpan ? from : null, to: isSpan ? to : null,
  };
}

/** Writes what differs from the usual; `isStep`: the browser's way back undoes it. */
export function write(state, { isStep = false } = {}) {
  const url = new URL(location.href);
  const put = (name, value) => (value ? url.searchParams.set(name, value) : url.searchParams.delete(name));
  put("axis", state.axis === AXES[0] ? "" : state.axis);
  put("smoothing", state.smoothing ? String(state.smoothing) : "");
  for (const name of FLAGS) put(name, state[name] ? "1" : "");
  for (const name of ["q", "group"]) put(name, state[name]);
  for (const name of ["keys", "hide"]) put(name, state[name].join(","));
  for (const name of SPANS) put(name, state[name] === null ? "" : String(state[name]));
  for (const name of LISTS) {
    url.searchParams.delete(name);
    for (const value of state[name]) url.searchParams.append(name, value);
  }
  // Commas read better than %2C, and mean the same.
  const address = url.pathname + url.search.replaceAll("%2C", ",") + url.hash;
  if (address === location.pathname + location.search + location.hash) return;
  if (isStep) history.pushState(history.state, "", address);
  else history.replaceState(history.state, "", address);
  document.dispatchEvent(new CustomEvent("th:address"));
}

function commas(text) {
  return (text ?? "").split(",").filter(Boolean);
}

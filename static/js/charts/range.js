// The span of time that a page shows, kept in its address so that a link shows a colleague the same.
//
// `?range=6h` ends now and moves on (live); `?from=…&to=…` (Unix seconds) is fixed. A page has one span: every module
// that shows something over time reads `timeRange()` and listens with `onRangeChange()`.

import { mount } from "../app.js";
import { DEFAULT_PRESET, PRESETS, parseRange, rangeQuery, validRange } from "./time-range.js";

const listeners = new Set();
let current = null;
let clockOffset = 0;

/** Returns {preset, from, to, span, isLive} in Unix seconds by the hub's clock; of a live span, as of this call. */
export function timeRange() {
  current ??= parseRange(location.search);
  if (!current.preset) return { ...current, span: current.to - current.from, isLive: false };
  const to = hubNow();
  return {
    preset: current.preset,
    from: to - PRESETS[current.preset],
    to,
    span: PRESETS[current.preset],
    isLive: true,
  };
}

/** Returns the time of the hub's clock, because the browser's may be wrong. */
export function hubNow() {
  return Date.now() / 1000 + clockOffset;
}

/** `seconds`: the hub's Unix time now. */
export function setHubClock(seconds) {
  clockOffset = seconds - Date.now() / 1000;
}

export function onRangeChange(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Sets the span to {preset} or {from, to}, as a step that the browser's Back button undoes. */
export function setRange(range) {
  const next = validRange(range);
  if (JSON.stringify(next) === JSON.stringify(current)) return;
  current = next;
  const url = new URL(location.href);
  for (const name of ["range", "from", "to"]) url.searchParams.delete(name);
  for (const [name, value] of Object.entries(rangeQuery(next))) url.searchParams.set(name, value);
  history.pushState(history.state, "", url);
  notify();
}

function notify() {
  for (const listener of [...listeners]) listener(timeRange());
  document.dispatchEvent(new CustomEvent("th:range"));
}

// Other parts of the page that show the same span reload themselves (hx-trigger="th:range from:document").
document.addEventListener("htmx:configRequest", (event) => {
  if (event.target.closest("[data-ranged]"))
    Object.assign(event.detail.parameters, rangeQuery(current ?? parseRange(location.search)));
});

addEventListener("popstate", () => {
  const before = JSON.stringify(current);
  current = parseRange(location.search);
  if (JSON.stringify(current) !== before) notify();
});

// The picker (templates/clusters/_range.html), a form that works without JavaScript, too.
mount("range", (form) => {
  if (form.dataset.now) setHubClock(Number(form.dataset.now));
  const liveButton = form.querySelector("[data-follow]");
  const customMenu = form.querySelector("details");
  const [from, to] = ["from", "to"].map((name) => form.querySelector(`[data-at=${name}]`));
  let lastPreset = timeRange().preset ?? DEFAULT_PRESET;
  const show = () => {
    const range = timeRange();
    lastPreset = range.preset ?? lastPreset;
    for (const button of form.querySelectorAll("[name=range]")) {
      button.setAttribute("aria-pressed", String(button.value === range.preset));
    }
    liveButton?.setAttribute("aria-pressed", String(range.isLive));
    customMenu?.querySelector("summary").classList.toggle("th-on", !range.isLive);
    if (from) from.value = localInputValue(range.from);
    if (to) to.value = localInputValue(range.to);
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const preset = event.submitter?.name === "range" && event.submitter.value;
    if (preset) setRange({ preset });
    else setRange({ from: Date.parse(from.value) / 1000, to: Date.parse(to.value) / 1000 });
    if (customMenu) customMenu.open = false;
  });
  liveButton?.addEventListener("click", () => {
    const range = timeRange();
    setRange(range.isLive ? range : { preset: lastPreset });
  });
  show();
  return onRangeChange(show);
});

/** Returns the value for an <input type="datetime-local">. */
function localInputValue(at) {
  const date = new Date(at * 1000);
  return new Date(at * 1000 - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

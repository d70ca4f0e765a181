// The span of time that a page shows, kept in its address so that a link shows a colleague the same.
//
// `?range=6h` ends now and moves on (live); `?from=…&to=…` (Unix seconds) stands still. One span per page: every module that shows
// something over time asks `timeRange()` and is told of changes.

import { mount } from "../app.js";

export const PRESETS = { "15m": 900, "1h": 3600, "6h": 21_600, "24h": 86_400, "7d": 604_800, "30d": 2_592_000 };
const USUAL = "1h";
const LEAST_S = 10;
const listeners = new Set();
let current = null;
let offset = 0;

/** {preset, from, to, span, isLive}; of a live one `from` and `to` are as of this call. Unix seconds by the hub's clock. */
export function timeRange() {
  current ??= parse(location.search);
  if (!current.preset) return { ...current, span: current.to - current.from, isLive: false };
  const to = now();
  return { preset: current.preset, from: to - PRESETS[current.preset], to, span: PRESETS[current.preset], isLive: true };
}

/** The hub's clock: a browser's own may be off. */
export function now() {
  return Date.now() / 1000 + offset;
}

export function setClock(hubNow) {
  offset = hubNow - Date.now() / 1000;
}

export function onRange(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** `wanted`: {preset} or {from, to}. The way back is the browser's. */
export function setRange(wanted) {
  const next = checked(wanted);
  if (JSON.stringify(next) === JSON.stringify(current)) return;
  current = next;
  const url = new URL(location.href);
  for (const name of ["range", "from", "to"]) url.searchParams.delete(name);
  for (const [name, value] of Object.entries(addressed(next))) url.searchParams.set(name, value);
  history.pushState(history.state, "", url);
  tell();
}

export function parse(search) {
  const asked = new URLSearchParams(search);
  const [from, to] = [seconds(asked.get("from")), seconds(asked.get("to"))];
  return checked(from !== null && to !== null ? { from, to } : { preset: asked.get("range") });
}

function checked({ preset, from, to }) {
  if (Number.isFinite(from) && Number.isFinite(to) && to > from) {
    const middle = (from + to) / 2;
    const half = Math.max(to - from, LEAST_S) / 2;
    return { preset: null, from: Math.round(middle - half), to: Math.round(middle + half) };
  }
  return { preset: Object.hasOwn(PRESETS, preset ?? "") ? preset : USUAL };
}

function addressed(range) {
  return range.preset ? { range: range.preset } : { from: range.from, to: range.to };
}

function seconds(text) {
  if (!text) return null;
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Date.parse(text) / 1000;
  return Number.isFinite(value) ? value : null;
}

function tell() {
  for (const listener of [...listeners]) listener(timeRange());
  document.dispatchEvent(new CustomEvent("th:range"));
}

// Parts of the page that are about the same span fetch themselves anew (hx-trigger="th:range from:document").
document.addEventListener("htmx:configRequest", (event) => {
  if (event.target.closest("[data-ranged]")) Object.assign(event.detail.parameters, addressed(current ?? parse(location.search)));
});

addEventListener("popstate", () => {
  const before = JSON.stringify(current);
  current = parse(location.search);
  if (JSON.stringify(current) !== before) tell();
});

// The picker (templates/clusters/_range.html): a form that works without this, too.
mount("range", (form) => {
  if (form.dataset.now) setClock(Number(form.dataset.now));
  const live = form.querySelector("[data-follow]");
  const own = form.querySelector("details");
  const [from, to] = ["from", "to"].map((name) => form.querySelector(`[data-at=${name}]`));
  let last = timeRange().preset ?? USUAL;
  const show = () => {
    const range = timeRange();
    last = range.preset ?? last;
    for (const button of form.querySelectorAll("[name=range]")) {
      button.setAttribute("aria-pressed", String(button.value === range.preset));
    }
    live?.setAttribute("aria-pressed", String(range.isLive));
    own?.querySelector("summary").classList.toggle("th-on", !range.isLive);
    if (from) from.value = local(range.from);
    if (to) to.value = local(range.to);
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const preset = event.submitter?.name === "range" && event.submitter.value;
    if (preset) setRange({ preset });
    else setRange({ from: Date.parse(from.value) / 1000, to: Date.parse(to.value) / 1000 });
    if (own) own.open = false;
  });
  live?.addEventListener("click", () => {
    const range = timeRange();
    setRange(range.isLive ? range : { preset: last }, range);
  });
  show();
  return onRange(show);
});

/** For <input type="datetime-local">. */
function local(at) {
  const date = new Date(at * 1000);
  return new Date(at * 1000 - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

// What every page has: theme switch, relative times, running durations, copy buttons, confirmation, live refresh,
// keyboard shortcuts.
import { mount } from "./app.js";
import { formatDateTime, formatDuration, formatRelativeTime } from "./formats.js";
import { topicSocket } from "./socket.js";
import "./confirm.js";
import "./focus.js";

const RETRY_MS = 2000;
const THEMES = ["system", "light", "dark"];

// htmx listens to the elements of a page from DOMContentLoaded on, which waits for all modules of the page. A socket
// may open before that, and an event dispatched then would be lost.
const htmxReady = new Promise((resolve) => {
  if (document.readyState === "complete") resolve();
  else document.addEventListener("DOMContentLoaded", resolve);
});

mount("theme", (button) => {
  const show = () => {
    const choice = document.documentElement.dataset.themeChoice;
    button.title = `Theme: ${choice}. Click to change.`;
    for (const icon of button.querySelectorAll("[data-for]")) icon.hidden = icon.dataset.for !== choice;
  };
  button.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.themeChoice) + 1) % THEMES.length];
    if (next === "system") localStorage.removeItem("trainhub.theme");
    else localStorage.setItem("trainhub.theme", next);
    dispatchEvent(new Event("trainhub:theme"));
  });
  addEventListener("trainhub:theme", show);
  show();
});

mount("time", (element) => {
  const at = Date.parse(element.dateTime);
  element.title = formatDateTime(at);
  const show = () => (element.textContent = formatRelativeTime(Date.now() - at));
  return eachSecond(show);
});

// The time of day in the reader's time zone, to the second.
mount("clock", (element) => {
  const at = new Date(element.dateTime);
  element.title = formatDateTime(at.getTime());
  element.textContent = at.toLocaleTimeString(undefined, { hour12: false });
});

// A duration that still grows. In a timeline its part of the bar grows with it.
mount("elapsed", (element) => {
  const since = Date.parse(element.dataset.since);
  const part = element.closest("[data-grows]");
  return eachSecond(() => {
    const seconds = Math.max(0, (Date.now() - since) / 1000);
    element.textContent = formatDuration(seconds);
    part?.style.setProperty("--share", Math.max(1, Math.round(seconds * 1000)));
  });
});

mount("copy", (button) => {
  button.addEventListener("click", async () => {
    const source = button.dataset.from && document.querySelector(button.dataset.from);
    await copy(source ? source.textContent : button.dataset.text);
    button.classList.add("th-done");
    setTimeout(() => button.classList.remove("th-done"), 1500);
  });
});

// Dispatches `live` on the element when its topic reports a change, at most once a second; htmx then fetches the
// partial. `detail.messages`: the messages since the last event, or null if some may be missing.
// `data-on`: the message types to react to. `data-every`: seconds after which to refresh in any case, for changes that
// no message reports.
mount("live", (element) => {
  const messageTypes = new Set((element.dataset.on ?? "run.changed").split(" "));
  let timer = null;
  let sentAt = 0;
  let messages = [];
  const notify = (message) => {
    if (!message || message.type === "hint") messages = null;
    else messages?.push(message);
    timer ??= setTimeout(
      async () => {
        await htmxReady;
        timer = null;
        sentAt = Date.now();
        element.dispatchEvent(new CustomEvent("live", { detail: { messages } }));
        messages = [];
      },
      Math.max(60, sentAt + 1000 - Date.now()),
    );
  };
  const stop = topicSocket(
    element.dataset.live,
    (message) => (messageTypes.has(message.type) || message.type === "hint") && notify(message),
    () => notify(), // also on the first open: things may have changed since the server rendered the page
  );
  const every = element.dataset.every && setInterval(() => document.hidden || notify(), element.dataset.every * 1000);
  // Of several servers one has just died, and the socket may be at another: no message would say that it is back.
  let retry = null;
  const fetchAgain = ({ detail }) => {
    if (detail.elt !== element || (detail.xhr.status >= 400 && detail.xhr.status < 500)) return;
    clearTimeout(retry);
    retry = setTimeout(notify, RETRY_MS);
  };
  element.addEventListener("htmx:responseError", fetchAgain);
  element.addEventListener("htmx:sendError", fetchAgain);
  return () => {
    element.removeEventListener("htmx:responseError", fetchAgain);
    element.removeEventListener("htmx:sendError", fetchAgain);
    clearTimeout(retry);
    clearTimeout(timer);
    clearInterval(every);
    stop();
  };
});

mount("dismiss", (button) => button.addEventListener("click", () => button.parentElement.remove()));

document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.th-menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

// A menu that was opened before htmx was ready has lost the event that fetches its content. htmx registered its own
// listener before this one.
document.addEventListener("DOMContentLoaded", () => {
  for (const menu of document.querySelectorAll("details[hx-get][open]")) menu.dispatchEvent(new Event("toggle"));
});

function eachSecond(show) {
  show();
  const timer = setInterval(() => document.hidden || show(), 1000);
  return () => clearInterval(timer);
}

async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Plain HTTP from another machine has no clipboard API.
  const area = Object.assign(document.createElement("textarea"), { value: text });
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

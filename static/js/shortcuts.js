// The dialog that lists the keys of this page. Loaded when somebody presses `?`.
import { KEYS as LOG_KEYS } from "./log/keys.js";

// `selector`: where the keys of a group work; without one, everywhere.
const GROUPS = [
  {
    title: "Everywhere",
    keys: [
      ["Ctrl K", "Open the command palette"],
      ["/", "Search"],
      ["?", "Show these keys"],
      ["Escape", "Close what is open"],
    ],
  },
  {
    title: "Forms",
    selector: "main form .th-field",
    keys: [
      ["e", "Go to the next error"],
      ["Alt E", "Go to the next error from inside a field"],
    ],
  },
  {
    title: "Tables",
    selector: "[data-rows]",
    keys: [
      ["j", "Next row"],
      ["k", "Previous row"],
      ["Enter", "Open the row"],
    ],
  },
  { title: "Logs", selector: "[data-mount~=log-view]", keys: LOG_KEYS.map(({ key, does }) => [key, does]) },
  {
    title: "Charts",
    selector: "[data-mount~=charts], [data-mount~=curves]",
    keys: [
      ["← →", "Move the cross-hair of the chart in focus"],
      ["Shift ← →", "Move it farther"],
      ["Home End", "Move it to the first or last point"],
      ["+ -", "Zoom in or out"],
      ["← →", "Move the panel whose handle is in focus"],
    ],
  },
];

export function showShortcuts() {
  const dialog = document.createElement("dialog");
  dialog.className = "th-dialog th-keys";
  dialog.setAttribute("aria-labelledby", "keys-title");
  const title = make("h2", { textContent: "Keyboard", id: "keys-title" });
  const close = make("button", { className: "th-button", textContent: "Close", type: "button" });
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  const footer = document.createElement("footer");
  footer.append(close);
  const groups = GROUPS.filter(({ selector }) => !selector || document.querySelector(selector));
  dialog.append(title, ...groups.map(groupElement), footer);
  document.body.append(dialog);
  dialog.showModal();
}

function groupElement({ title, keys }) {
  const section = document.createElement("section");
  const list = document.createElement("dl");
  for (const [key, does] of keys) {
    const term = document.createElement("dt");
    for (const part of key.split(" ")) term.append(make("kbd", { textContent: part }), " ");
    list.append(term, make("dd", { textContent: does }));
  }
  section.append(make("h3", { textContent: title }), list);
  return section;
}

function make(name, properties) {
  return Object.assign(document.createElement(name), properties);
}

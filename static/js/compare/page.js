// The compare page's own state, kept in its address beside that of the curves: which runs, which sections are open, which value of
// the metrics, only differences. What changes the runs asks for the page anew; nothing of the rest is lost by that.

import { mount } from "../app.js";

mount("compare", (root) => {
  const clicked = (event) => {
    const link = event.target.closest("a[data-put-runs], a[data-put-without], a[data-add-run]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const url = new URL(location.href);
    const { putRuns, putWithout, addRun } = link.dataset;
    if (putRuns !== undefined) url.searchParams.set("runs", putRuns);
    if (putWithout) append(url, "without", putWithout);
    if (addRun) append(url, "runs", addRun);
    go(url);
  };
  root.addEventListener("click", clicked);

  for (const section of root.querySelectorAll(".cm-section")) {
    if (section.open) opened(section);
    section.addEventListener("toggle", () => {
      if (section.open) opened(section);
      keep(root);
    });
  }

  const only = root.querySelector("[data-part=only]");
  only?.addEventListener("change", () => {
    root.classList.toggle("cm-only", only.checked);
    put("only", only.checked ? "1" : "");
  });

  const buttons = [...root.querySelectorAll("[data-statistic]")];
  for (const button of buttons) {
    button.addEventListener("click", () => {
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
      root.querySelector(".cm-figures").dataset.shown = button.dataset.statistic;
      put("stat", button === buttons[0] ? "" : button.dataset.statistic);
    });
  }
  return () => root.removeEventListener("click", clicked);
});

// Other lines, another legend: the page anew.
mount("grouping", (select) => {
  select.addEventListener("change", () => {
    const url = new URL(location.href);
    if (select.value) url.searchParams.set("group", select.value);
    else url.searchParams.delete("group");
    url.searchParams.delete("hide");
    go(url);
  });
});

mount("copy-address", (button) => {
  button.addEventListener("click", async () => {
    await navigator.clipboard?.writeText(location.href);
    button.classList.add("th-done");
    const word = button.lastChild;
    const before = word.textContent;
    word.textContent = navigator.clipboard ? "Copied" : "Copy the address above";
    setTimeout(() => (word.textContent = before), 1500);
  });
});

/** Says `opened` inside, for what is fetched or drawn only then. */
function opened(section) {
  // After htmx and the other modules have begun to listen.
  setTimeout(() => section.dispatchEvent(new CustomEvent("opened")));
}

function keep(root) {
  const sections = [...root.querySelectorAll(".cm-section")];
  const open = sections.filter((section) => section.open).map((section) => section.dataset.section);
  const usual = sections.filter((section) => "usual" in section.dataset).map((section) => section.dataset.section);
  put("sections", String(open) === String(usual) ? "" : open.join(",") || "none");
}

function put(name, value) {
  const url = new URL(location.href);
  if (value) url.searchParams.set(name, value);
  else url.searchParams.delete(name);
  history.replaceState(history.state, "", readable(url));
}

function append(url, name, value) {
  const named = (url.searchParams.get(name) ?? "").split(",").filter(Boolean);
  url.searchParams.set(name, [...named.filter((other) => other !== value), value].join(","));
}

function go(url) {
  location.assign(readable(url));
}

/** Commas read better than %2C, and mean the same. */
function readable(url) {
  return url.pathname + url.search.replaceAll("%2C", ",") + url.hash;
}

// The compare page's own state, kept in its address beside that of the curves: the runs, the open sections, the
// statistic of the metrics, and whether only differences are shown. A change of the runs reloads the page and keeps the
// rest.

import { mount } from "../app.js";

mount("compare", (root) => {
  const handleClick = (event) => {
    const link = event.target.closest("a[data-put-runs], a[data-put-without], a[data-add-run]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const url = new URL(location.href);
    const { putRuns, putWithout, addRun } = link.dataset;
    if (putRuns !== undefined) url.searchParams.set("runs", putRuns);
    if (putWithout) appendToList(url, "without", putWithout);
    if (addRun) appendToList(url, "runs", addRun);
    openUrl(url);
  };
  root.addEventListener("click", handleClick);

  for (const section of root.querySelectorAll(".cm-section")) {
    if (section.open) dispatchOpened(section);
    section.addEventListener("toggle", () => {
      if (section.open) dispatchOpened(section);
      saveSections(root);
    });
  }

  const onlyDifferences = root.querySelector("[data-part=only]");
  onlyDifferences?.addEventListener("change", () => {
    root.classList.toggle("cm-only", onlyDifferences.checked);
    setParam("only", onlyDifferences.checked ? "1" : "");
  });

  const buttons = [...root.querySelectorAll("[data-statistic]")];
  for (const button of buttons) {
    button.addEventListener("click", () => {
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
      root.querySelector(".cm-figures").dataset.shown = button.dataset.statistic;
      setParam("stat", button === buttons[0] ? "" : button.dataset.statistic);
    });
  }
  return () => root.removeEventListener("click", handleClick);
});

// Other groups need other lines and another legend, so the page is loaded again.
mount("grouping", (select) => {
  select.addEventListener("change", () => {
    const url = new URL(location.href);
    if (select.value) url.searchParams.set("group", select.value);
    else url.searchParams.delete("group");
    url.searchParams.delete("hide");
    openUrl(url);
  });
});

mount("copy-address", (button) => {
  button.addEventListener("click", async () => {
    await navigator.clipboard?.writeText(location.href);
    button.classList.add("th-done");
    const label = button.lastChild;
    const before = label.textContent;
    label.textContent = navigator.clipboard ? "Copied" : "Copy the address above";
    setTimeout(() => (label.textContent = before), 1500);
  });
});

/** Dispatches `opened` on a section, for parts that are fetched or drawn only then. */
function dispatchOpened(section) {
  // After htmx and the other modules have added their listeners.
  setTimeout(() => section.dispatchEvent(new CustomEvent("opened")));
}

function saveSections(root) {
  const sections = [...root.querySelectorAll(".cm-section")];
  const open = sections.filter((section) => section.open).map((section) => section.dataset.section);
  const defaults = sections.filter((section) => "usual" in section.dataset).map((section) => section.dataset.section);
  setParam("sections", String(open) === String(defaults) ? "" : open.join(",") || "none");
}

function setParam(name, value) {
  const url = new URL(location.href);
  if (value) url.searchParams.set(name, value);
  else url.searchParams.delete(name);
  history.replaceState(history.state, "", readablePath(url));
}

function appendToList(url, name, value) {
  const names = (url.searchParams.get(name) ?? "").split(",").filter(Boolean);
  url.searchParams.set(name, [...names.filter((other) => other !== value), value].join(","));
}

function openUrl(url) {
  location.assign(readablePath(url));
}

/** Commas are easier to read than %2C, and mean the same. */
function readablePath(url) {
  return url.pathname + url.search.replaceAll("%2C", ",") + url.hash;
}

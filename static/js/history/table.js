// The run table: selection of rows by checkbox or key, child runs that unfold under their parent, menus with a filter,
// and the refresh of rows whose runs have changed.
import { mount, mountIn, unmountIn } from "../app.js";
import { askConfirmation } from "../confirm.js";

const ACTIVE_EVERY_MS = 30_000; // no message says that an active run has logged new values
const GROUPS_EVERY_MS = 15_000; // groups are fetched all at once
const RETRY_MS = 2000;
const selected = new Set(); // numbers of runs, kept because htmx replaces the rows
const expanded = new Map(); // id of a row -> the address of its children
let lastClicked = null;

const boxes = () => [...document.querySelectorAll('.th-history input[name="run"]')];
const form = () => document.querySelector("#bulk");

mount("history", (table) => {
  for (const [row, url] of [...expanded]) restoreChildren(table, row, url);
  showSelection();
});

// Messages name the runs that have changed. The page says which versions of rows it shows, and gets those that differ.
mount("changed-rows", (element) => {
  let changed = new Set(); // numbers of runs; null: any run may have changed
  let isDue = false;
  let isBusy = false;
  let fetchedAt = 0;
  let retry = null;
  const refresh = async () => {
    const isGrouped = element.querySelector(".th-group") !== null;
    if (!isDue || isBusy || document.hidden || (isGrouped && Date.now() - fetchedAt < GROUPS_EVERY_MS)) return;
    const query = rowQuery(element, changed);
    const search = location.search;
    [changed, isDue, isBusy, fetchedAt] = [new Set(), false, true, Date.now()];
    try {
      const response = await fetch(`${element.dataset.changes}?${query}`);
      if (response.status >= 500) throw new Error(response.statusText);
      if (!response.ok) changed = null;
      const markup = response.status === 200 ? await response.text() : "";
      // Another filter or order may have replaced the table in the meantime.
      if (markup && element.isConnected && search === location.search) await showRows(element, markup);
    } catch {
      // Of several servers one may have died, and the socket be at another: no message would say that it is back.
      changed = null;
      clearTimeout(retry);
      retry = setTimeout(setDue, RETRY_MS);
    }
    isBusy = false;
    refresh(); // if more has changed in the meantime
  };
  const setDue = () => {
    isDue = true;
    refresh();
  };
  element.addEventListener("live", ({ detail }) => {
    if (!detail.messages) changed = null;
    for (const { number } of detail.messages ?? []) changed?.add(number);
    setDue();
  });
  const groupTimer = setInterval(refresh, GROUPS_EVERY_MS);
  const activeTimer = setInterval(() => element.querySelector("tr[data-active]") && setDue(), ACTIVE_EVERY_MS);
  document.addEventListener("visibilitychange", refresh);
  return () => {
    clearTimeout(retry);
    clearInterval(groupTimer);
    clearInterval(activeTimer);
    document.removeEventListener("visibilitychange", refresh);
  };
});

// Most visitors do not filter: the code that completes filters is loaded when the pointer or the focus comes near.
mount("filter", (bar) => {
  let isRequested = false;
  const load = async () => {
    if (isRequested) return;
    isRequested = true;
    const { FilterField } = await import("./filter.js");
    new FilterField(bar).listen();
  };
  bar.addEventListener("focusin", load);
  bar.addEventListener("pointerenter", load);
  if (bar.contains(document.activeElement)) load();
});

mount("chosen", (bar) => {
  bar.addEventListener("click", (event) => {
    const button = event.target.closest("[data-verb], [data-none]");
    if (!button) return;
    if ("none" in button.dataset) return clearSelection();
    bar.elements.verb.value = button.dataset.verb;
    if (button.dataset.ask) askConfirmation(button.dataset.ask, button.dataset.yes, () => bar.requestSubmit());
    else bar.requestSubmit();
  });
  bar.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.target.tagName !== "INPUT") return;
    event.preventDefault();
    bar.querySelector('[data-verb="tag"]').click();
  });
  // Runs that are selected on other pages of the table are sent, too.
  bar.addEventListener("formdata", (event) => {
    event.formData.delete("run");
    for (const number of selected) event.formData.append("run", number);
  });
  updateBar();
});

mount("picker", (picker) => {
  const find = picker.querySelector("[data-find]");
  const showMatches = () => {
    const text = find.value.trim().toLowerCase();
    for (const item of picker.querySelectorAll(".th-picker-list > :not(h3)")) {
      item.hidden = !item.textContent.toLowerCase().includes(text);
    }
  };
  find.addEventListener("input", showMatches);
  showMatches(); // somebody may have typed before this was mounted
  find.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
  find.focus();
});

document.addEventListener("change", (event) => {
  const box = event.target;
  if (box.matches('.th-history input[name="run"]')) setSelected([box], box.checked);
  else if (box.matches(".th-history [data-all]")) {
    if (box.checked) setSelected(boxes(), true);
    else clearSelection();
  }
});

document.addEventListener("click", (event) => {
  const box = event.target.closest('.th-history input[name="run"]');
  if (box) {
    const all = boxes();
    const [from, to] = [all.findIndex((other) => other.value === lastClicked), all.indexOf(box)].sort((a, b) => a - b);
    if (event.shiftKey && from >= 0) setSelected(all.slice(from, to + 1), box.checked);
    lastClicked = box.value;
  }
  const fold = event.target.closest("[data-unfold]");
  if (fold) toggleChildren(fold.closest("tr"), fold);
  const star = event.target.closest(".th-history .th-star");
  if (star) toggleStar(star);
});

// The row in use gets its links and buttons when the pointer or the focus comes to it.
for (const type of ["pointerover", "focusin"]) {
  document.addEventListener(type, (event) => equip(event.target.closest?.(".th-history tbody tr")));
}

document.addEventListener("keydown", (event) => {
  if (
    event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]") ||
    event.ctrlKey ||
    event.metaKey ||
    event.altKey
  )
    return;
  const row = document.querySelector(".th-history tr.th-at");
  equip(row);
  if (event.key === "x") row?.querySelector('input[name="run"]')?.click();
  else if (event.key === "o") row?.querySelector("[data-unfold]")?.click();
  else if (event.key === "c" && selected.size) form().querySelector("[data-compare]").click();
});

function setSelected(boxList, isOn) {
  for (const box of boxList) {
    box.checked = isOn;
    if (isOn) selected.add(box.value);
    else selected.delete(box.value);
  }
  updateBar();
}

/** Also clears the selection of runs on other pages of the table. */
function clearSelection() {
  selected.clear();
  setSelected(boxes(), false);
}

function updateBar() {
  const bar = form();
  if (!bar) return;
  bar.hidden = selected.size === 0;
  bar.querySelector("[data-count]").textContent = selected.size;
  const link = bar.querySelector("[data-compare]");
  link.href = `${link.dataset.compare}?runs=${[...selected].join(",")}`;
  for (const box of boxes()) box.closest("tr").classList.toggle("th-is-chosen", box.checked);
  const all = document.querySelector(".th-history [data-all]");
  if (!all) return;
  const count = boxes().filter((box) => box.checked).length;
  all.checked = count > 0 && count === boxes().length;
  all.indeterminate = count > 0 && !all.checked;
}

function showSelection() {
  for (const box of boxes()) box.checked = selected.has(box.value);
  updateBar();
}

async function equip(row) {
  if (row) (await import("./row-tools.js")).equipRow(row);
}

async function toggleStar(star) {
  const row = star.closest("tr");
  const url = row.closest("table").dataset.star.replace("/0/", `/${row.id.replace("run-", "")}/`);
  await window.htmx.ajax("POST", url, { source: star, target: star, swap: "outerHTML" });
  row.querySelector(".th-star")?.focus();
}

function rowQuery(element, changed) {
  const query = new URLSearchParams(location.search);
  const rows = [...element.querySelectorAll("tr[data-version]")];
  const versions = (some) => some.map(({ id, dataset }) => `${id.replace("run-", "")}.${dataset.version}`).join("-");
  query.set("shape", element.querySelector("table")?.dataset.shape ?? "");
  query.set("rows", versions(rows.filter(({ dataset }) => !dataset.partOf)));
  query.set("parts", versions(rows.filter(({ dataset }) => dataset.partOf)));
  if (changed) query.set("changed", [...changed].join("-"));
  return query;
}

async function showRows(element, markup) {
  const { placeRows } = await import("./changed-rows.js");
  const { equipRow } = await import("./row-tools.js");
  const { inUse, refolded, restoreFocus } = placeRows(element, markup);
  inUse.forEach(equipRow);
  restoreFocus();
  for (const row of refolded) if (expanded.has(row.id)) loadChildren(row, expanded.get(row.id));
  showSelection();
}

async function toggleChildren(row, button) {
  if (expanded.delete(row.id)) {
    button.setAttribute("aria-expanded", "false");
    removeChildren(row);
    return;
  }
  // The address of a group has a query of its own.
  const query = row.matches(".th-group") ? "" : row.closest("table").dataset.below;
  expanded.set(row.id, button.dataset.unfold + query);
  await loadChildren(row, expanded.get(row.id));
}

function removeChildren(row) {
  for (const child of document.querySelectorAll(`[data-part-of="${row.id}"]`)) {
    unmountIn(child);
    child.remove();
  }
}

function restoreChildren(table, id, url) {
  const row = table.querySelector(`#${CSS.escape(id)}`);
  if (row?.querySelector("[data-unfold]")) loadChildren(row, url);
  else expanded.delete(id);
}

async function loadChildren(row, url) {
  const response = await fetch(url, { headers: { "HX-Request": "true" } });
  if (!response.ok || !row.isConnected || !expanded.has(row.id)) return;
  row.querySelector("[data-unfold]").setAttribute("aria-expanded", "true");
  const template = document.createElement("template");
  template.innerHTML = await response.text();
  const rows = [...template.content.querySelectorAll("tr")];
  for (const child of rows) child.dataset.partOf = row.id;
  removeChildren(row);
  row.after(...rows);
  rows.forEach(mountIn);
  showSelection();
}

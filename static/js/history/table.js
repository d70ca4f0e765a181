// The run table: selection of rows by checkbox or key, child runs that unfold under their parent, menus with a filter.
import { mount } from "../app.js";
import { askConfirmation } from "../confirm.js";

const selected = new Set(); // numbers of runs, kept because htmx replaces the rows
const expanded = new Map(); // id of a row -> the address of its children
let lastClicked = null;

const boxes = () => [...document.querySelectorAll('.th-history input[name="run"]')];
const form = () => document.querySelector("#bulk");

mount("history", (table) => {
  for (const box of boxes()) box.checked = selected.has(box.value);
  for (const [row, url] of [...expanded]) restoreChildren(table, row, url);
  updateBar();
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
  find.addEventListener("input", () => {
    const text = find.value.trim().toLowerCase();
    for (const item of picker.querySelectorAll(".th-picker-list > :not(h3)")) {
      item.hidden = !item.textContent.toLowerCase().includes(text);
    }
  });
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
});

document.addEventListener("keydown", (event) => {
  if (
    event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]") ||
    event.ctrlKey ||
    event.metaKey ||
    event.altKey
  )
    return;
  const row = document.querySelector(".th-history tr.th-at");
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

async function toggleChildren(row, button) {
  if (expanded.delete(row.id)) {
    button.setAttribute("aria-expanded", "false");
    for (const child of document.querySelectorAll(`[data-part-of="${row.id}"]`)) child.remove();
    return;
  }
  expanded.set(row.id, button.dataset.unfold);
  await loadChildren(row, button.dataset.unfold);
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
  row.after(...rows);
  for (const child of rows) window.htmx.process(child);
  for (const box of boxes()) box.checked = selected.has(box.value);
  updateBar();
}

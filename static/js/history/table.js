// The run table: rows chosen by box or key, runs that are part of another unfolded under it, menus that find a column.
import { mount } from "../app.js";
import { ask } from "../confirm.js";
import "./filter.js";

const chosen = new Set(); // numbers of runs: rows are swapped while the page lives
const unfolded = new Map(); // the row's id -> where what is under it comes from
let last = null;

const boxes = () => [...document.querySelectorAll('.th-history input[name="run"]')];
const form = () => document.querySelector("#bulk");

mount("history", (table) => {
  for (const box of boxes()) box.checked = chosen.has(box.value);
  for (const [row, address] of [...unfolded]) restore(table, row, address);
  show();
});

mount("chosen", (bar) => {
  bar.addEventListener("click", (event) => {
    const button = event.target.closest("[data-verb], [data-none]");
    if (!button) return;
    if ("none" in button.dataset) return choose(boxes(), false);
    bar.elements.verb.value = button.dataset.verb;
    if (button.dataset.ask) ask(button.dataset.ask, button.dataset.yes, () => bar.requestSubmit());
    else bar.requestSubmit();
  });
  bar.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.target.tagName !== "INPUT") return;
    event.preventDefault();
    bar.querySelector('[data-verb="tag"]').click();
  });
  // Boxes of a page that is no longer there count too.
  bar.addEventListener("formdata", (event) => {
    event.formData.delete("run");
    for (const number of chosen) event.formData.append("run", number);
  });
  show();
});

mount("picker", (picker) => {
  const find = picker.querySelector("[data-find]");
  find.addEventListener("input", () => {
    const wanted = find.value.trim().toLowerCase();
    for (const item of picker.querySelectorAll(".th-picker-list > :not(h3)")) {
      item.hidden = !item.textContent.toLowerCase().includes(wanted);
    }
  });
  find.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
  find.focus();
});

document.addEventListener("change", (event) => {
  const box = event.target;
  if (box.matches('.th-history input[name="run"]')) choose([box], box.checked);
  else if (box.matches(".th-history [data-all]")) choose(boxes(), box.checked);
});

document.addEventListener("click", (event) => {
  const box = event.target.closest('.th-history input[name="run"]');
  if (box) {
    const all = boxes();
    const [from, to] = [all.findIndex((other) => other.value === last), all.indexOf(box)].sort((a, b) => a - b);
    if (event.shiftKey && from >= 0) choose(all.slice(from, to + 1), box.checked);
    last = box.value;
  }
  const fold = event.target.closest("[data-unfold]");
  if (fold) toggle(fold.closest("tr"), fold);
});

document.addEventListener("keydown", (event) => {
  if (event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]") || event.ctrlKey || event.metaKey || event.altKey) return;
  const row = document.querySelector(".th-history tr.th-at");
  if (event.key === "x") row?.querySelector('input[name="run"]')?.click();
  else if (event.key === "o") row?.querySelector("[data-unfold]")?.click();
  else if (event.key === "c" && chosen.size) form().querySelector("[data-compare]").click();
});

function choose(some, on) {
  for (const box of some) {
    box.checked = on;
    if (on) chosen.add(box.value);
    else chosen.delete(box.value);
  }
  if (!on && some.length === boxes().length) chosen.clear();
  show();
}

function show() {
  const bar = form();
  if (!bar) return;
  bar.hidden = chosen.size === 0;
  bar.querySelector("[data-count]").textContent = chosen.size;
  const link = bar.querySelector("[data-compare]");
  link.href = `${link.dataset.compare}?runs=${[...chosen].join(",")}`;
  for (const box of boxes()) box.closest("tr").classList.toggle("th-is-chosen", box.checked);
  const all = document.querySelector(".th-history [data-all]");
  if (!all) return;
  const count = boxes().filter((box) => box.checked).length;
  all.checked = count > 0 && count === boxes().length;
  all.indeterminate = count > 0 && !all.checked;
}

async function toggle(row, button) {
  if (unfolded.delete(row.id)) {
    button.setAttribute("aria-expanded", "false");
    for (const part of document.querySelectorAll(`[data-part-of="${row.id}"]`)) part.remove();
    return;
  }
  unfolded.set(row.id, button.dataset.unfold);
  await unfold(row, button.dataset.unfold);
}

function restore(table, id, address) {
  const row = table.querySelector(`#${CSS.escape(id)}`);
  if (row?.querySelector("[data-unfold]")) unfold(row, address);
  else unfolded.delete(id);
}

async function unfold(row, address) {
  const answer = await fetch(address, { headers: { "HX-Request": "true" } });
  if (!answer.ok || !row.isConnected || !unfolded.has(row.id)) return;
  row.querySelector("[data-unfold]").setAttribute("aria-expanded", "true");
  const holder = document.createElement("template");
  holder.innerHTML = await answer.text();
  const parts = [...holder.content.querySelectorAll("tr")];
  for (const part of parts) part.dataset.partOf = row.id;
  row.after(...parts);
  for (const part of parts) window.htmx.process(part);
  for (const box of boxes()) box.checked = chosen.has(box.value);
  show();
}

// Media by step: one slider chooses the step, and each cell shows its newest file up to that step. The chosen step is
// in the address; without one, the newest files are shown, also of a run that goes on.

import { mount } from "../app.js";
import { Previews } from "./previews.js";
import { addressOf, lastUpTo } from "./steps.js";

const PARAM = "media-step";

mount("media", (root) => {
  const { steps, cells } = JSON.parse(document.getElementById(root.dataset.config).textContent);
  const part = (element, name) => element.querySelector(`[data-part="${name}"]`);
  const slider = part(root, "slider");
  const previews = new Previews();
  const places = [...root.querySelectorAll("[data-cell]")].map((element) => [element, cells[element.dataset.cell]]);

  const show = (step) => {
    slider.setAttribute("aria-valuetext", step);
    part(root, "step").textContent = step;
    for (const [element, cell] of places) {
      const file = lastUpTo(cell.files, step);
      part(element, "none").hidden = file !== undefined;
      const bytes = part(element, "bytes");
      bytes.hidden = file === undefined;
      part(element, "at").textContent = file?.[0] ?? "–";
      if (file) showFile(element, cell, file, bytes);
    }
  };
  const showFile = (element, cell, [at, path, smallPath], bytes) => {
    if (cell.preview) previews.show(bytes, cell.preview + encodeURIComponent(path));
    else showBytes(bytes, addressOf(cell, smallPath || path));
    bytes.setAttribute(bytes.localName === "img" ? "alt" : "aria-label", `${cell.key} at step ${at}`);
    part(element, "page")?.setAttribute("href", cell.page + encodeURIComponent(path));
  };

  slider.addEventListener("input", () => show(steps[slider.value]));
  slider.addEventListener("change", () => {
    const isLast = Number(slider.value) === steps.length - 1;
    saveStep(isLast ? null : steps[slider.value]);
  });

  const chosen = new URL(location.href).searchParams.get(PARAM);
  const isChosen = chosen !== null && Number.isFinite(Number(chosen));
  const last = steps.length - 1;
  slider.value = isChosen ? Math.max(0, steps.findLastIndex((step) => step <= Number(chosen))) : last;
  show(steps[slider.value]);
  return () => previews.stop();
});

// New files are shown by replacing the page's part, which ends a sound and loads all figures again. So they wait while
// a sound is playing, and an answer that has no other files than the page changes nothing. A sound may have begun, or a
// step may have been chosen, after the answer was requested.
mount("media-refresh", (element) => {
  let isWaiting = false;
  const isPlaying = () => [...element.querySelectorAll("audio")].some((audio) => !audio.paused);
  const config = (root) => root.querySelector("#media-config")?.textContent;
  element.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.elt !== element || !isPlaying()) return;
    isWaiting = true;
    event.preventDefault();
  });
  element.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.requestConfig.elt !== element || event.detail.xhr.status !== 200) return;
    const answer = new DOMParser().parseFromString(event.detail.serverResponse, "text/html");
    if (config(element) !== undefined && config(element) === config(answer)) event.preventDefault();
    else if (isPlaying()) {
      isWaiting = true;
      event.preventDefault();
    }
  });
  // Events of sounds do not bubble. A sound that ends also pauses.
  const refresh = () => {
    if (!isWaiting || isPlaying()) return;
    isWaiting = false;
    element.dispatchEvent(new CustomEvent("live"));
  };
  element.addEventListener("pause", refresh, true);
  return () => element.removeEventListener("pause", refresh, true);
});

function showBytes(element, address) {
  // The same address again would stop a sound that is playing.
  if (element.getAttribute("src") !== address) element.setAttribute("src", address);
}

function saveStep(step) {
  const url = new URL(location.href);
  if (step === null) url.searchParams.delete(PARAM);
  else url.searchParams.set(PARAM, step);
  history.replaceState(history.state, "", url.pathname + url.search.replaceAll("%2C", ",") + url.hash);
}

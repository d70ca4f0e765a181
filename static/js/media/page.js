// What was logged by step: one slider chooses the step, and each cell shows its newest file up to that step. The chosen
// step is in the address; without one, the newest files are shown, also of a run that goes on.

import { mount } from "../app.js";
import { showDocument } from "./document.js";
import { showHistogram } from "./histogram.js";
import { addressOf, lastUpTo } from "./steps.js";

const PARAM = "media-step";

mount("media", (root) => {
  const { steps, cells } = JSON.parse(document.getElementById(root.dataset.config).textContent);
  const part = (element, name) => element.querySelector(`[data-part="${name}"]`);
  const slider = part(root, "slider");
  const places = [...root.querySelectorAll("[data-cell]")].map((element) => [element, cells[element.dataset.cell]]);

  const show = (step) => {
    slider.setAttribute("aria-valuetext", step);
    part(root, "step").textContent = step;
    showCells(step, places);
  };
  const showCells = (step, shown) => {
    for (const [element, cell] of shown) {
      const file = lastUpTo(cell.files, step);
      part(element, "none").hidden = file !== undefined;
      const bytes = part(element, "bytes");
      bytes.hidden = file === undefined;
      part(element, "at").textContent = file?.[0] ?? "–";
      if (file) showFile(element, cell, file, bytes);
    }
  };
  const showFile = (element, cell, [at, path, smallPath], bytes) => {
    const address = addressOf(cell.bytes, cell, smallPath || path);
    const label = `${cell.key} at step ${at}`;
    part(element, "page")?.setAttribute("href", cell.page + encodeURIComponent(path));
    if (cell.kind === "histogram") {
      showHistogram(bytes, cell.histogram, at, cell.key);
      return;
    }
    if (bytes.localName === "div") {
      bytes.setAttribute("aria-label", label);
      const frame = cell.kind === "page" ? address : addressOf(cell.figures, cell, path);
      showDocument(bytes, address, { isPage: cell.kind === "page", frame, label });
      return;
    }
    // The same address again would stop a sound that is playing.
    if (bytes.getAttribute("src") !== address) bytes.setAttribute("src", address);
    bytes.setAttribute(bytes.localName === "img" ? "alt" : "aria-label", label);
  };

  slider.addEventListener("input", () => show(steps[slider.value]));
  const isAtLast = () => Number(slider.value) === steps.length - 1;
  const save = () => saveStep(isAtLast() ? null : steps[slider.value]);
  slider.addEventListener("change", save);

  const chosen = new URL(location.href).searchParams.get(PARAM);
  if (chosen !== null && Number.isFinite(Number(chosen))) {
    slider.value = Math.max(0, steps.findLastIndex((step) => step <= Number(chosen)));
    show(steps[slider.value]);
  } else if (!isAtLast()) {
    // Moved before this script was there to listen.
    show(steps[slider.value]);
    save();
  } else {
    // The server has set the addresses of images and sounds.
    showCells(steps.at(-1), places.filter(([element]) => part(element, "bytes").localName === "div"));
  }
});

// While a sound is playing, new files wait for its end: to replace the page's part would end it. A request may have
// begun before the sound, so its answer is refused, too.
mount("media-refresh", (element) => {
  let isDue = false;
  const isPlaying = () => [...element.querySelectorAll("audio")].some((audio) => !audio.paused);
  const isSame = (html) => {
    const answer = new DOMParser().parseFromString(html, "text/html");
    const [there, here] = [answer, document].map((page) => page.getElementById("media-config")?.textContent);
    return here !== undefined && there === here;
  };
  const waitIfPlaying = (event) => {
    const source = event.type === "htmx:beforeSwap" ? event.detail.requestConfig.elt : event.detail.elt;
    if (source !== element || !isPlaying()) return;
    event.preventDefault();
    isDue = true;
  };
  element.addEventListener("htmx:beforeRequest", waitIfPlaying);
  element.addEventListener("htmx:beforeSwap", waitIfPlaying);
  // Other files of the run have changed: frames and tables stay as they are, without loading them again.
  element.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.requestConfig.elt === element && isSame(event.detail.serverResponse)) event.preventDefault();
  });
  // These events of a sound do not bubble. A sound that ends is paused first.
  element.addEventListener("pause", () => isDue && !isPlaying() && refresh(), { capture: true });
  const refresh = () => {
    isDue = false;
    globalThis.htmx.trigger(element, "live");
  };
});

function saveStep(step) {
  const url = new URL(location.href);
  if (step === null) url.searchParams.delete(PARAM);
  else url.searchParams.set(PARAM, step);
  history.replaceState(history.state, "", url.pathname + url.search.replaceAll("%2C", ",") + url.hash);
}

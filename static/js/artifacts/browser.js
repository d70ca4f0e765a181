// The files of a run. The page refreshes them when they change, but not while the reader has selected or opened one.

import { mount } from "../app.js";

mount("files", (element) => {
  const isInUse = () => element.querySelector("input:checked, iframe") !== null;
  element.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.elt === element && isInUse()) event.preventDefault();
  });
  element.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.requestConfig.elt === element && isInUse()) event.preventDefault();
  });
});

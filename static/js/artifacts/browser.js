// The files of a run: the page fetches them anew when there are others, but not from under somebody who is choosing or looking.

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

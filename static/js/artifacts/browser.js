// The files of a run: the page fetches them anew when there are others, but not from under somebody who is choosing.

import { mount } from "../app.js";

mount("files", (element) => {
  element.addEventListener("htmx:beforeRequest", (event) => {
    const isChoosing = element.querySelector("input:checked, iframe") !== null;
    if (event.detail.elt === element && isChoosing) event.preventDefault();
  });
});

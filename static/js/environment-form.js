// The form of an environment: a chosen or dropped file becomes the text of the field, where it can be read
// and edited before it is sent.
import { mount } from "./app.js";

mount("environment-form", (form) => {
  const text = form.querySelector("#source");
  const file = form.querySelector("#file");
  for (const hint of form.querySelectorAll("[data-only-script]")) hint.hidden = false;

  const take = async (chosen) => {
    if (!chosen) return;
    text.value = await chosen.text();
    // Otherwise the file would replace the edited text when the form is sent.
    file.value = "";
    text.focus();
  };
  file.addEventListener("change", () => take(file.files[0]));
  text.addEventListener("dragover", (event) => event.preventDefault());
  text.addEventListener("drop", (event) => {
    const [dropped] = event.dataTransfer.files;
    if (!dropped) return;
    event.preventDefault();
    take(dropped);
  });
});

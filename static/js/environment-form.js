// The form of an environment: chosen or dropped files become the text of the field, where it can be read and
// edited before it is sent.
import { mount } from "./app.js";

// Stands between the text of pyproject.toml and that of uv.lock.
const SEPARATOR = "#--- uv.lock ---";
// As the hub accepts (environments/projects/source_text.py).
const MAX_BYTES = 2 * 1024 * 1024;

mount("environment-form", (form) => {
  const text = form.querySelector("#source");
  const file = form.querySelector("#file");
  for (const hint of form.querySelectorAll("[data-only-script]")) hint.hidden = false;

  const take = async (files) => {
    if (files.some((item) => item.size > MAX_BYTES)) {
      // Chosen as it is: the hub says what it accepts.
      const data = new DataTransfer();
      for (const item of files) data.items.add(item);
      file.files = data.files;
      return;
    }
    const lock = files.find((item) => item.name === "uv.lock");
    const source = files.find((item) => item !== lock);
    if (!source && !lock) return;
    // A uv.lock that comes alone belongs to the pyproject.toml that is there.
    const first = source ? await source.text() : text.value.split(SEPARATOR)[0];
    text.value = lock ? `${first.trimEnd()}\n${SEPARATOR}\n${await lock.text()}` : first;
    // Otherwise the files would replace the edited text when the form is sent.
    file.value = "";
    text.focus();
  };
  file.addEventListener("change", () => take([...file.files]));
  text.addEventListener("dragover", (event) => event.preventDefault());
  text.addEventListener("drop", (event) => {
    const dropped = [...event.dataTransfer.files];
    if (!dropped.length) return;
    event.preventDefault();
    take(dropped);
  });
});

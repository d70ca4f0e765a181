// The upload form of models: sends the chosen files with their paths, shows how far it is, and goes to the new version.
import { mount } from "./app.js";
import { bytes } from "./formats.js";

mount("model-upload", (form) => {
  const files = form.querySelector("#chosen");
  const folder = form.querySelector("#folder");
  const button = form.querySelector("button");
  let chosen = [];

  const choose = (input, other) => {
    chosen = [...input.files];
    other.value = "";
    const size = chosen.reduce((sum, file) => sum + file.size, 0);
    const count = `${chosen.length} file${chosen.length === 1 ? "" : "s"}`;
    form.querySelector("[data-chosen]").textContent = chosen.length ? `${count}, ${bytes(size)}` : "";
  };
  files.addEventListener("change", () => choose(files, folder));
  folder.addEventListener("change", () => choose(folder, files));

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    for (const line of form.querySelectorAll("[data-error]")) line.hidden = true;
    if (!chosen.length) return show(form, "files", "Choose at least one file.");
    button.disabled = true;
    send(form, chosen).finally(() => (button.disabled = false));
  });
});

function send(form, chosen) {
  const data = new FormData();
  data.append("description", form.elements.description.value);
  for (const file of chosen) data.append("files", file, path(file));
  const request = new XMLHttpRequest();
  const bar = form.querySelector(".md-progress");
  bar.hidden = false;
  request.upload.addEventListener("progress", (event) => progress(bar, event));
  return new Promise((done) => {
    request.addEventListener("loadend", () => {
      bar.hidden = true;
      answer(form, request);
      done();
    });
    request.open("POST", form.dataset.url.replace("NAME", encodeURIComponent(form.elements.name.value.trim() || " ")));
    request.send(data);
  });
}

// A chosen folder's own name stays behind: what is inside it is the model.
function path(file) {
  const inside = file.webkitRelativePath.split("/").slice(1).join("/");
  return inside || file.name;
}

function progress(bar, event) {
  if (!event.lengthComputable) return;
  bar.querySelector("progress").value = event.loaded / event.total;
  const sent = `${bytes(event.loaded)} of ${bytes(event.total)}`;
  bar.querySelector("[data-progress]").textContent = event.loaded < event.total ? sent : "Checking and registering…";
}

function answer(form, request) {
  if (request.status === 201) {
    location.assign(request.getResponseHeader("Location"));
    return;
  }
  let told = {};
  try {
    told = JSON.parse(request.responseText);
  } catch {
    told = { detail: "The hub could not be reached, or the upload was cut off. Nothing of it was kept; send it again." };
  }
  const error = told.errors?.[0];
  if (error) show(form, error.field, `${error.message[0].toUpperCase()}${error.message.slice(1)}.`);
  else show(form, "", told.detail || told.title);
}

function show(form, field, sentence) {
  const line = form.querySelector(`[data-error="${field}"]`) || form.querySelector('[data-error=""]');
  line.textContent = sentence;
  line.hidden = false;
}

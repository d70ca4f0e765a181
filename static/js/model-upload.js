// The upload form of models: sends the chosen files with their paths, shows the progress, and opens the new version.
import { mount } from "./app.js";
import { formatBytes } from "./formats.js";

mount("model-upload", (form) => {
  const files = form.querySelector("#chosen");
  const folder = form.querySelector("#folder");
  const button = form.querySelector("button");
  let selection = [];

  const choose = (input, other) => {
    selection = [...input.files];
    other.value = "";
    const size = selection.reduce((sum, file) => sum + file.size, 0);
    const count = `${selection.length} file${selection.length === 1 ? "" : "s"}`;
    form.querySelector("[data-chosen]").textContent = selection.length ? `${count}, ${formatBytes(size)}` : "";
  };
  files.addEventListener("change", () => choose(files, folder));
  folder.addEventListener("change", () => choose(folder, files));
  // On a slow connection they may have been used before this script was loaded.
  if (files.files.length) choose(files, folder);
  else if (folder.files.length) choose(folder, files);

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    for (const line of form.querySelectorAll("[data-error]")) line.hidden = true;
    if (!selection.length) return showError(form, "files", "Choose at least one file.");
    button.disabled = true;
    send(form, selection).finally(() => (button.disabled = false));
  });
});

function send(form, selection) {
  const data = new FormData();
  data.append("description", form.elements.description.value);
  for (const file of selection) data.append("files", file, path(file));
  const request = new XMLHttpRequest();
  const bar = form.querySelector(".md-progress");
  bar.hidden = false;
  request.upload.addEventListener("progress", (event) => progress(bar, event));
  return new Promise((done) => {
    request.addEventListener("loadend", () => {
      bar.hidden = true;
      handleResponse(form, request);
      done();
    });
    request.open("POST", form.dataset.url.replace("NAME", encodeURIComponent(form.elements.name.value.trim() || " ")));
    request.send(data);
  });
}

// The name of a chosen folder is dropped: its content is the model.
function path(file) {
  const inside = file.webkitRelativePath.split("/").slice(1).join("/");
  return inside || file.name;
}

function progress(bar, event) {
  if (!event.lengthComputable) return;
  bar.querySelector("progress").value = event.loaded / event.total;
  const sent = `${formatBytes(event.loaded)} of ${formatBytes(event.total)}`;
  bar.querySelector("[data-progress]").textContent = event.loaded < event.total ? sent : "Checking and registering…";
}

function handleResponse(form, request) {
  if (request.status === 201) {
    location.assign(request.getResponseHeader("Location"));
    return;
  }
  let problem = {};
  try {
    problem = JSON.parse(request.responseText);
  } catch {
    problem = {
      detail: "The hub could not be reached, or the upload was interrupted. Nothing was stored; please try again.",
    };
  }
  const error = problem.errors?.[0];
  if (error) showError(form, error.field, `${error.message[0].toUpperCase()}${error.message.slice(1)}.`);
  else showError(form, "", problem.detail || problem.title);
}

function showError(form, field, sentence) {
  const line = form.querySelector(`[data-error="${field}"]`) || form.querySelector('[data-error=""]');
  line.textContent = sentence;
  line.hidden = false;
}

// The wizard's pages: timestamps for autosave, rows that can be added, uploads of a folder or a zip, forms that
// are sent once.
import { mount } from "./app.js";
import { folderToZip, filesFromDrop } from "./wizard-zip.js";

// Each request carries the time of its input, so that the hub ignores one that arrives after a newer one.
mount("wizard-form", (form) => {
  const stamp = () => (form.elements.typed_at.value = Date.now());
  form.addEventListener("input", stamp, true);
  form.addEventListener("submit", stamp);
});

// A number of GPUs that was the default of the cluster chosen before becomes that of the new one.
mount("wizard-cluster", (group) => {
  const gpus = group.closest("form").elements.gpus_per_node;
  let before = group.querySelector(":checked")?.dataset.gpus;
  group.addEventListener("change", (event) => {
    const { gpus: now } = event.target.dataset;
    if (gpus.value === before && now !== undefined) gpus.value = now;
    before = now;
  });
});

mount("wizard-once", (form) => {
  form.addEventListener("submit", () => {
    const button = form.querySelector("button");
    button.disabled = true;
    // What may take many seconds says that it goes on.
    if (button.dataset.busy) button.textContent = button.dataset.busy;
  });
  // After the Back button the browser may restore this page with its button disabled.
  addEventListener("pageshow", (event) => event.persisted && location.reload());
});

mount("wizard-rows", (list) => {
  const add = list.querySelector('[data-role="add"]');
  const rows = () => [...list.querySelectorAll(".wz-row")];
  const blank = rows().at(-1).cloneNode(true);
  // The last row may have been typed into before this script was loaded, and a clone takes what was typed along.
  for (const field of blank.querySelectorAll("input, textarea")) field.value = field.defaultValue;
  const changed = () => list.dispatchEvent(new Event("input", { bubbles: true }));
  const show = (row) => (row.querySelector('[data-role="remove"]').hidden = false);
  rows().forEach(show);
  add.hidden = false;
  add.addEventListener("click", () => {
    const row = blank.cloneNode(true);
    show(row);
    add.before(row);
    row.querySelector("input").focus();
  });
  // A variable is a value or the name of a secret: only the field of its kind is shown and sent.
  list.addEventListener("change", (event) => {
    if (!event.target.matches('[data-role="kind"]')) return;
    for (const field of event.target.closest(".wz-row").querySelectorAll("[data-kind]")) {
      field.hidden = field.disabled = field.dataset.kind !== event.target.value;
    }
    changed();
  });
  list.addEventListener("click", (event) => {
    const button = event.target.closest('[data-role="remove"]');
    if (!button) return;
    const row = button.closest(".wz-row");
    const near = row.nextElementSibling?.querySelector("input") ?? add;
    row.remove();
    near.focus();
    changed();
  });
});

mount("wizard-upload", (form) => {
  const part = (role) => form.querySelector(`[data-role="${role}"]`);
  const zip = part("zip");
  for (const element of form.querySelectorAll("[data-only-script]")) element.hidden = false;
  zip.classList.add("th-off");
  part("send").hidden = true;
  const folder = part("folder");
  const sendZip = () => zip.files.length && send(form, part, async () => zip.files[0]);
  const sendFolder = () => {
    const files = [...folder.files].map((file) => ({ path: withoutTop(file.webkitRelativePath), file }));
    if (files.length) send(form, part, (showStatus) => folderToZip(files, showStatus));
  };
  zip.addEventListener("change", sendZip);
  folder.addEventListener("change", sendFolder);
  const setDragOver = (isOver) => form.classList.toggle("wz-over", isOver);
  form.addEventListener("dragover", (event) => (event.preventDefault(), setDragOver(true)));
  form.addEventListener("dragleave", () => setDragOver(false));
  form.addEventListener("drop", async (event) => {
    event.preventDefault();
    setDragOver(false);
    const files = await filesFromDrop(event.dataTransfer);
    const isZip = files.length === 1 && files[0].path.toLowerCase().endsWith(".zip");
    if (files.length)
      send(form, part, isZip ? async () => files[0].file : (showStatus) => folderToZip(files, showStatus));
  });
  // On a slow connection the fields are shown before this script is loaded, and may have been used already.
  sendZip() || sendFolder();
});

function withoutTop(path) {
  return path.slice(path.indexOf("/") + 1);
}

async function send(form, part, make) {
  const showStatus = (text, isError = false) => {
    part("state").textContent = text;
    part("state").classList.toggle("wz-failed", isError);
  };
  part("progress").hidden = false;
  try {
    const file = await make(showStatus);
    const answer = await post(form, file, (share) => {
      part("progress").firstElementChild.style.width = `${Math.round(share * 100)}%`;
      showStatus(share < 1 ? `Uploading, ${Math.round(share * 100)} %` : "Checking the files");
    });
    location.assign(answer.url);
    // The address may be that of this page, which then shows the new source only after a reload.
    if (new URL(answer.url, location.href).pathname === location.pathname) location.reload();
  } catch (error) {
    part("progress").hidden = true;
    showStatus(error.message, true);
  }
}

function post(form, file, onShare) {
  return new Promise((resolve, reject) => {
    const body = new FormData();
    body.append("csrfmiddlewaretoken", form.elements.csrfmiddlewaretoken.value);
    body.append("file", file, file.name ?? "folder.zip");
    const request = new XMLHttpRequest();
    request.open("POST", form.action);
    request.setRequestHeader("Accept", "application/json");
    request.responseType = "json";
    request.upload.onprogress = (event) => event.lengthComputable && onShare(event.loaded / event.total);
    request.onload = () => {
      if (request.status < 300 && request.response?.url) resolve(request.response);
      else
        reject(
          new Error(
            request.response?.message ??
              `The hub answered ${request.status}; nothing was stored. Try again, or upload a smaller folder.`,
          ),
        );
    };
    request.onerror = () =>
      reject(new Error("The upload was interrupted; nothing was stored. Check the connection and try again."));
    request.send(body);
  });
}

// The page on which files are uploaded into a dataset.
import { mount } from "../app.js";
import { formatBytes, formatDuration } from "../formats.js";
import { chosenFiles, droppedFiles, folderProblem } from "./folder.js";
import { HubRequests } from "./hub-requests.js";
import { Speed } from "./speed.js";
import { State, Upload } from "./upload.js";

const SHOWN_EVERY_MS = 250;
const MAX_REFUSED = 100;
const WORDS = {
  [State.COMPARING]: "Comparing with what the hub has",
  [State.SENDING]: "Uploading",
  [State.PAUSED]: "Paused. What was sent is kept.",
  [State.FINISHING]: "Making the version",
  [State.FINISHED]: "Done",
};
const count = (files) => `${files.toLocaleString("en")} file${files === 1 ? "" : "s"}`;

class UploadPage {
  constructor(element) {
    this.element = element;
    this.parts = Object.fromEntries(
      [...element.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part]),
    );
    this.limits = { files: Number(element.dataset.maxFiles), bytes: Number(element.dataset.maxBytes) };
    this.speed = new Speed();
    const { files, folder, drop, pause, resume, without } = this.parts;
    for (const input of [files, folder]) {
      input.addEventListener("change", () => this.#choose(chosenFiles(input)));
    }
    drop.addEventListener("dragover", (event) => {
      event.preventDefault();
      drop.classList.add("up-over");
    });
    drop.addEventListener("dragleave", () => drop.classList.remove("up-over"));
    drop.addEventListener("drop", (event) => this.#drop(event));
    pause.addEventListener("click", () => this.upload.pause());
    resume.addEventListener("click", () => this.#start());
    without.addEventListener("click", () => this.#finish());
    // On a slow connection they may have been used before this script was loaded.
    for (const input of [files, folder]) if (input.files.length) this.#choose(chosenFiles(input));
  }

  stop() {
    if (this.upload && [State.COMPARING, State.SENDING].includes(this.upload.state)) this.upload.pause();
    clearTimeout(this.timer);
  }

  async #drop(event) {
    event.preventDefault();
    this.parts.drop.classList.remove("up-over");
    try {
      this.#choose(await droppedFiles(event.dataTransfer));
    } catch {
      this.#say("The files could not be read: choose them by the buttons.", true);
    }
  }

  #choose(files) {
    const problem = folderProblem(files, this.limits, formatBytes);
    if (problem) return this.#say(problem, true);
    const headers = JSON.parse(document.body.getAttribute("hx-headers") ?? "{}");
    const hub = new HubRequests(this.element.dataset.address, headers);
    this.upload = new Upload(files, hub, () => this.#changed());
    this.parts.drop.hidden = true;
    this.parts.progress.hidden = false;
    if (this.parts.earlier) this.parts.earlier.hidden = true;
    this.#start();
  }

  #start() {
    this.speed.reset();
    this.upload.run();
  }

  async #finish() {
    this.parts.without.disabled = true;
    try {
      await this.upload.finish();
    } catch (error) {
      this.parts.without.disabled = false;
      this.#say(error.message, true);
    }
  }

  #changed() {
    const { state } = this.upload;
    if (state === State.FINISHED) location.assign(`${this.element.dataset.page}${this.upload.version}/`);
    if (state !== this.state) {
      this.state = state;
      this.#show();
    } else {
      this.timer ??= setTimeout(() => this.#show(), SHOWN_EVERY_MS);
    }
  }

  #show() {
    clearTimeout(this.timer);
    this.timer = null;
    const { upload, parts } = this;
    const { state, refused } = upload;
    const needsChoice = refused.size > 0 && upload.isComplete && state === State.SENDING;
    parts.bar.value = upload.totalBytes ? upload.doneBytes / upload.totalBytes : upload.doneFiles / upload.files.length;
    parts.files_done.textContent = `${upload.doneFiles.toLocaleString("en")} of ${count(upload.files.length)}`;
    parts.bytes_done.textContent = `${formatBytes(upload.doneBytes)} of ${formatBytes(upload.totalBytes)}`;
    parts.speed.textContent = state === State.SENDING && !needsChoice ? this.#speed() : "";
    parts.pause.hidden = needsChoice || ![State.COMPARING, State.SENDING].includes(state);
    parts.resume.hidden = ![State.PAUSED, State.INTERRUPTED].includes(state);
    parts.without.hidden = !needsChoice || refused.size === upload.files.length;
    if (state === State.INTERRUPTED) {
      this.#say(`Interrupted: ${upload.problem} What was sent is kept; continue when that is mended.`, true);
    } else if (needsChoice) this.#say("All others are uploaded.");
    else this.#say(WORDS[state]);
    this.#showRefused(refused);
  }

  #speed() {
    const { upload, speed } = this;
    speed.add(performance.now(), upload.sentBytes, upload.doneFiles);
    const { rate } = speed;
    if (!rate) return "";
    const missing = upload.files.length - upload.refused.size - upload.doneFiles;
    const left = speed.secondsLeft(upload.totalBytes - upload.doneBytes, missing);
    const time = left === null ? "" : `, about ${formatDuration(left)} left`;
    return `${formatBytes(rate.bytes)}/s, ${Math.round(rate.files).toLocaleString("en")} files/s${time}`;
  }

  #showRefused(refused) {
    const { parts } = this;
    if (parts.refused.childElementCount === Math.min(refused.size, MAX_REFUSED)) return;
    parts.refusals.hidden = !refused.size;
    parts.refused_count.textContent = `${count(refused.size)} cannot be uploaded`;
    const items = [...refused].slice(0, MAX_REFUSED).map(([path, reason]) => {
      const item = document.createElement("li");
      const name = document.createElement("code");
      name.textContent = path;
      item.append(name, `: ${reason}.`);
      return item;
    });
    parts.refused.replaceChildren(...items);
  }

  /** Screen readers read it aloud, so it changes only with the state. */
  #say(text, isError = false) {
    const { status } = this.parts;
    if (status.textContent !== text) status.textContent = text;
    status.classList.toggle("th-error", isError);
  }
}

mount("dataset-upload", (element) => {
  const page = new UploadPage(element);
  return () => page.stop();
});

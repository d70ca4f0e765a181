// The list of a run's logs: who writes, what came last, and for how long there has been silence.
import { duration } from "../formats.js";
import { decode } from "./feed.js";
import { plain } from "./terminal.js";

const REFRESH_AFTER_MS = 1000;
const SILENT_AFTER_S = 10;
const decoder = new TextDecoder();

export class Lanes {
  /** `root` holds the lanes; they are swapped by htmx while the page lives. */
  constructor(root, { onChoose, onSwap }) {
    this.root = root;
    this.heard = new Map(); // log name -> when its last bytes came
    this.latest = new Map(); // log name -> its last line
    root.addEventListener("click", (event) => {
      const lane = event.target.closest("[data-log]");
      if (!lane || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      event.preventDefault();
      onChoose(lane.dataset.log);
    });
    root.addEventListener("htmx:afterSwap", () => {
      this.suggestion = root.querySelector("[aria-current]")?.dataset.log;
      this.show();
      onSwap();
    });
    this.timer = setInterval(() => document.hidden || this.showSilence(), 1000);
  }

  close() {
    clearInterval(this.timer);
    clearTimeout(this.asked);
  }

  choose(name) {
    this.chosen = name;
    if (!name) this.latest.clear();
    this.show();
  }

  /** A `log.appended` of any log of this attempt. */
  receive({ name, data }) {
    this.heard.set(name, Date.now());
    const line = data ? lastLine(decoder.decode(decode(data))) : "";
    if (line) this.latest.set(name, line);
    if (!data || !this.lane(name)) this.ask();
    this.showOne(name);
  }

  /** What the viewer itself knows of the log it shows. */
  tell(name, line) {
    if (!line.trim()) return;
    this.latest.set(name, line);
    this.showOne(name);
  }

  /** A flood carries no bytes, and a new log has no lane: let the server draw the lanes, not too often. */
  ask() {
    this.asked ??= setTimeout(() => {
      this.asked = null;
      this.latest.clear();
      this.root.dispatchEvent(new CustomEvent("live"));
    }, REFRESH_AFTER_MS);
  }

  lane(name) {
    return this.root.querySelector(`[data-log="${CSS.escape(name)}"]`);
  }

  show() {
    for (const lane of this.root.querySelectorAll("[data-log]")) {
      if (lane.dataset.log === this.chosen) lane.setAttribute("aria-current", "true");
      else lane.removeAttribute("aria-current");
      this.showOne(lane.dataset.log);
    }
    this.showSilence();
  }

  showOne(name) {
    const place = this.lane(name)?.querySelector(".lane-line");
    if (place && this.latest.has(name)) place.textContent = this.latest.get(name);
  }

  showSilence() {
    for (const place of this.root.querySelectorAll("[data-silence]")) {
      const name = place.closest("[data-log]").dataset.log;
      const since = this.heard.get(name) ?? Date.parse(place.dataset.silence);
      const seconds = (Date.now() - since) / 1000;
      place.textContent = seconds >= SILENT_AFTER_S ? `silent ${duration(seconds)}` : "";
    }
  }
}

export function lastLine(text) {
  const lines = text.split("\n");
  for (let index = lines.length - 1; index >= 0; index--) {
    const line = plain(lines[index]).trim();
    if (line) return line.slice(0, 300);
  }
  return "";
}

// The list of a run's logs: who writes, what came last, and for how long there has been silence.
import { bytes } from "../formats.js";
import { Arranging } from "./arranging.js";
import { Clock } from "./clock.js";
import { decode } from "./feed.js";
import { plain } from "./terminal.js";

const REFRESH_AFTER_MS = 1000;
const REFRESH_PER_LANE_MS = 8; // the hub has as much more to read as there are lanes
const DRAW_EVERY_MS = 250;
const decoder = new TextDecoder();

export class Lanes {
  /** `root` holds the lanes; they are swapped by htmx when there are others. `url`: what of them changes. */
  constructor(root, { url, onChoose, onSwap }) {
    Object.assign(this, { root, url, onChoose, onSwap });
    this.arranging = new Arranging();
    this.waiting = new Map(); // log name -> its last message, not drawn yet
    root.addEventListener("click", (event) => {
      const lane = event.target.closest("[data-log]");
      if (!lane || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      event.preventDefault();
      onChoose(lane.dataset.log);
    });
    root.addEventListener("htmx:afterSwap", () => {
      this.begin();
      onSwap();
    });
    this.timer = setInterval(() => document.hidden || this.tick(), 1000);
    this.begin();
  }

  begin() {
    this.suggestion = this.root.querySelector("[aria-current]")?.dataset.log;
    const lanes = this.root.querySelector(".lanes");
    this.byName = new Map([...this.root.querySelectorAll("[data-log]")].map((lane) => [lane.dataset.log, lane]));
    this.clock = new Clock(lanes);
    this.tick();
    this.arranging.use(lanes);
    this.show();
  }

  close() {
    clearInterval(this.timer);
    clearTimeout(this.asked);
    clearTimeout(this.drawing);
  }

  tick() {
    this.clock.tick();
    if (this.arranging.element) this.arranging.arrange();
  }

  choose(name) {
    this.chosen = name;
    this.show();
  }

  /** A `log.appended` of any log of this attempt; a flood of them is drawn a few times a second. */
  receive(message) {
    this.waiting.set(message.name, message);
    this.drawing ??= setTimeout(() => {
      this.drawing = null;
      const messages = [...this.waiting.values()];
      this.waiting.clear();
      for (const each of messages) this.take(each);
    }, DRAW_EVERY_MS);
  }

  take({ name, data, offset, size }) {
    const lane = this.lane(name);
    if (!lane) return this.ask();
    if (lane.dataset.rank) this.clock.heard(lane);
    this.showSize(lane, offset + size);
    const line = data ? lastLine(decoder.decode(decode(data))) : "";
    if (line) this.showLine(lane, line);
    else if (!data) this.ask();
  }

  /** What the viewer itself knows of the log it shows. */
  tell(name, line) {
    const lane = this.lane(name);
    if (lane && line.trim()) this.showLine(lane, line);
  }

  /** A state has changed, or a flood carried no bytes: ask the hub, not too often. */
  ask() {
    this.asked ??= setTimeout(() => this.refresh(), Math.max(REFRESH_AFTER_MS, REFRESH_PER_LANE_MS * this.byName.size));
  }

  async refresh() {
    try {
      const response = await fetch(this.url + location.search, { cache: "no-store" });
      if (!response.ok) return;
      const told = await response.json();
      // Other lanes than these: let the server draw them.
      if (told.lanes.length !== this.byName.size || told.lanes.some(({ log }) => !this.byName.has(log))) {
        this.root.dispatchEvent(new CustomEvent("live"));
        return;
      }
      this.clock.set(told);
      for (const each of told.lanes) this.draw(this.lane(each.log), each);
      this.tick();
      this.suggestion = told.chosen;
      this.onSwap();
    } catch {
      // The hub is away; the socket tells when it is back, and then this is asked again.
    } finally {
      this.asked = null;
    }
  }

  draw(lane, told) {
    this.showSize(lane, Math.max(told.size, Number(lane.dataset.size)));
    if (!lane.dataset.rank) return;
    Object.assign(lane.dataset, { state: told.state, least: told.least_s });
    lane.dataset.written = Math.max(told.written_ms ?? 0, Number(lane.dataset.written)) || "";
    if (told.line) this.showLine(lane, told.line);
    for (const element of lane.querySelectorAll(".th-dot, .lane-state")) element.classList.replace(`th-tone-${lane.dataset.tone}`, `th-tone-${told.tone}`);
    lane.dataset.tone = told.tone;
    lane.querySelector(".lane-state").textContent = told.exit ? `${told.word} · ${told.exit}` : told.word;
    this.clock.draw(lane, told);
  }

  /** A log's name for people. */
  title(name) {
    return this.lane(name)?.querySelector(".lane-title").textContent ?? name;
  }

  /** Say on the button of a narrow screen which log is shown. */
  label(button) {
    const lane = this.lane(this.chosen);
    button.querySelector(".th-dot").className = lane?.querySelector(".th-dot")?.className ?? "th-dot";
    button.querySelector("strong").textContent = lane ? this.title(this.chosen) : "No log yet";
    const others = this.byName.size - 1;
    button.querySelector(".th-muted").textContent = others > 0 ? `and ${others} more` : "";
  }

  lane(name) {
    return this.byName.get(name) ?? null;
  }

  show() {
    for (const [name, lane] of this.byName) {
      if (name === this.chosen) lane.setAttribute("aria-current", "true");
      else lane.removeAttribute("aria-current");
    }
  }

  showSize(lane, size) {
    lane.dataset.size = size;
    lane.querySelector(".lane-size").textContent = bytes(size);
  }

  showLine(lane, text) {
    const place = lane.querySelector(".lane-line");
    if (place) place.textContent = text;
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

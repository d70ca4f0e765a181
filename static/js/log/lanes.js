// The list of a run's logs: state, last line, size, and how long each rank has been silent.
import { formatBytes } from "../formats.js";
import { LaneFilter } from "./lane-filter.js";
import { LaneTimeline } from "./lane-timeline.js";
import { decodeBase64 } from "./log-feed.js";
import { plainText } from "./terminal.js";

const REFRESH_AFTER_MS = 1000;
const RETRY_MS = 2000;
const REFRESH_PER_LANE_MS = 8; // the hub reads a file for each lane
const DRAW_EVERY_MS = 250;
const decoder = new TextDecoder();

export class Lanes {
  /**
   * `root` contains the lanes; htmx replaces them when there are other lanes. `url` answers with their states as JSON.
   * `onChoose(name)`: the reader has clicked a lane. `onUpdate()`: states or lanes have changed.
   */
  constructor(root, { url, onChoose, onUpdate }) {
    Object.assign(this, { root, url, onChoose, onUpdate });
    this.filter = new LaneFilter();
    this.pending = new Map(); // log name -> its last message that is not shown yet
    root.addEventListener("click", (event) => {
      const lane = event.target.closest("[data-log]");
      if (!lane || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      event.preventDefault();
      onChoose(lane.dataset.log);
    });
    root.addEventListener("htmx:afterSwap", () => {
      this.attach();
      onUpdate();
    });
    this.timer = setInterval(() => document.hidden || this.tick(), 1000);
    this.attach();
  }

  attach() {
    this.suggestion = this.root.querySelector("[aria-current]")?.dataset.log;
    const lanes = this.root.querySelector(".lanes");
    this.byName = new Map([...this.root.querySelectorAll("[data-log]")].map((lane) => [lane.dataset.log, lane]));
    this.timeline = new LaneTimeline(lanes);
    this.tick();
    this.filter.attach(lanes);
    this.markCurrent();
  }

  close() {
    this.isClosed = true;
    clearInterval(this.timer);
    clearTimeout(this.refreshTimer);
    clearTimeout(this.drawTimer);
  }

  tick() {
    this.timeline.tick();
    if (this.filter.element) this.filter.update();
  }

  setCurrent(name) {
    this.current = name;
    this.markCurrent();
  }

  /**
   * Handles a `log.appended` of any log of this attempt. However many arrive, the lanes change a few times a second.
   */
  receive(message) {
    this.pending.set(message.name, message);
    this.drawTimer ??= setTimeout(() => {
      this.drawTimer = null;
      const messages = [...this.pending.values()];
      this.pending.clear();
      for (const latest of messages) this.applyMessage(latest);
    }, DRAW_EVERY_MS);
  }

  applyMessage({ name, data, offset, size }) {
    const lane = this.lane(name);
    if (!lane) return this.requestRefresh();
    if (lane.dataset.rank) this.timeline.recordOutput(lane);
    this.showSize(lane, offset + size);
    const line = data ? lastLine(decoder.decode(decodeBase64(data))) : "";
    if (line) this.showLine(lane, line);
    else if (!data) this.requestRefresh();
  }

  /** Shows the last line of a log that the viewer itself has loaded. */
  showLastLine(name, line) {
    const lane = this.lane(name);
    if (lane && line.trim()) this.showLine(lane, line);
  }

  /** Fetches the states soon: one has changed, or a message came without bytes. Limits how often the hub is asked. */
  requestRefresh() {
    this.refreshTimer ??= setTimeout(
      () => this.refresh(),
      Math.max(REFRESH_AFTER_MS, REFRESH_PER_LANE_MS * this.byName.size),
    );
  }

  async refresh() {
    let retryMs = 0;
    try {
      const response = await fetch(this.url + location.search, { cache: "no-store" });
      if (response.status >= 500) retryMs = RETRY_MS;
      if (!response.ok) return;
      const answer = await response.json();
      // There are other lanes than these: let the server render them.
      if (answer.lanes.length !== this.byName.size || answer.lanes.some(({ log }) => !this.byName.has(log))) {
        this.root.dispatchEvent(new CustomEvent("live"));
        return;
      }
      this.timeline.sync(answer);
      for (const state of answer.lanes) this.applyState(this.lane(state.log), state);
      this.tick();
      this.suggestion = answer.chosen;
      this.onUpdate();
    } catch {
      // Of several servers one may have died, and the socket be at another: no message would say that it is back.
      retryMs = RETRY_MS;
    } finally {
      this.refreshTimer = retryMs && !this.isClosed ? setTimeout(() => this.refresh(), retryMs) : null;
    }
  }

  applyState(lane, state) {
    this.showSize(lane, Math.max(state.size, Number(lane.dataset.size)));
    if (!lane.dataset.rank) return;
    Object.assign(lane.dataset, { state: state.state, least: state.least_s });
    lane.dataset.written = Math.max(state.written_ms ?? 0, Number(lane.dataset.written)) || "";
    if (state.line) this.showLine(lane, state.line);
    for (const element of lane.querySelectorAll(".th-dot, .lane-state"))
      element.classList.replace(`th-tone-${lane.dataset.tone}`, `th-tone-${state.tone}`);
    lane.dataset.tone = state.tone;
    lane.querySelector(".lane-state").textContent = state.exit ? `${state.word} · ${state.exit}` : state.word;
    this.timeline.drawBar(lane, state);
  }

  /** Returns the title of a log's lane, or its name if there is no lane. */
  title(name) {
    return this.lane(name)?.querySelector(".lane-title").textContent ?? name;
  }

  /** Shows on the button of a narrow screen which log is open. */
  describeCurrent(button) {
    const lane = this.lane(this.current);
    button.querySelector(".th-dot").className = lane?.querySelector(".th-dot")?.className ?? "th-dot";
    button.querySelector("strong").textContent = lane ? this.title(this.current) : "No log yet";
    const others = this.byName.size - 1;
    button.querySelector(".th-muted").textContent = others > 0 ? `and ${others} more` : "";
  }

  lane(name) {
    return this.byName.get(name) ?? null;
  }

  markCurrent() {
    for (const [name, lane] of this.byName) {
      if (name === this.current) lane.setAttribute("aria-current", "true");
      else lane.removeAttribute("aria-current");
    }
  }

  showSize(lane, size) {
    lane.dataset.size = size;
    lane.querySelector(".lane-size").textContent = formatBytes(size);
  }

  showLine(lane, text) {
    const target = lane.querySelector(".lane-line");
    if (target) target.textContent = text;
  }
}

/** Returns the visible text of the last line that is not blank, at most 300 characters, or "". */
export function lastLine(text) {
  const lines = text.split("\n");
  for (let index = lines.length - 1; index >= 0; index--) {
    const line = plainText(lines[index]).trim();
    if (line) return line.slice(0, 300);
  }
  return "";
}

// The one clock of a run's lanes, the hub's: its axis, the bars on it, and who has been silent for how long.
import { clock, duration } from "../formats.js";

const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400, 172_800, 604_800];
const MOST_TICKS = 4;
const SILENT_AFTER_S = 10;
const STUCK_AFTER_S = 20;
const LONGER_THAN_PEERS = 4;

/** Ticks `[second, label]` of an axis of `span` seconds that begins at `from` (milliseconds). */
export function ticks(span, from) {
  const step = STEPS_S.find((seconds) => span / seconds <= MOST_TICKS) ?? Math.ceil(span / MOST_TICKS / 604_800) * 604_800;
  const out = [[0, new Date(from).toLocaleTimeString(undefined, { hour12: false })]];
  for (let at = step; at < span * 0.86; at += step) if (at > span * 0.22) out.push([at, `+${short(at)}`]);
  return out;
}

/** Which of the running ranks are silent far longer than their peers: `silences` in seconds, by log name. */
export function stuck(silences) {
  const ordered = [...silences.values()].sort((left, right) => left - right);
  if (ordered.length < 2) return new Set();
  return new Set(
    [...silences].filter(([, seconds]) => {
      const others = ordered.toSpliced(ordered.indexOf(seconds), 1);
      return seconds >= STUCK_AFTER_S && seconds >= LONGER_THAN_PEERS * others[Math.floor((others.length - 1) / 2)];
    }).map(([name]) => name),
  );
}

export class Clock {
  /** `element`: the lanes, with their times; drawn anew by the server they make a new clock. */
  constructor(element) {
    this.element = element;
    this.from = Number(element.dataset.from);
    this.ahead = Number(element.dataset.now) - Date.now(); // of this browser's own clock
    this.axis = element.querySelector(".lanes-axis");
    this.lanes = [...element.querySelectorAll("[data-rank]")];
    for (const lane of this.lanes) this.explain(lane);
  }

  get now() {
    return Date.now() + this.ahead;
  }

  get isRunning() {
    return this.lanes.some((lane) => lane.dataset.state === "Running");
  }

  /** The hub has told its times again. */
  set({ from_ms: from, now_ms: now, failed_s: failed }) {
    this.from = from;
    this.ahead = now - Date.now();
    if (failed === null) return;
    this.element.dataset.failed = failed;
    this.element.style.setProperty("--fail", failed);
  }

  /** Once a second: the axis grows, and so do the silences. */
  tick() {
    const span = this.span();
    this.element.style.setProperty("--span", span);
    this.element.style.setProperty("--now", span);
    this.drawAxis(span);
    const running = this.lanes.filter((lane) => lane.dataset.state === "Running" && lane.dataset.written);
    const silences = new Map(running.map((lane) => [lane.dataset.log, (this.now - lane.dataset.written) / 1000]));
    const hung = stuck(silences);
    for (const lane of this.lanes) this.silence(lane, silences.get(lane.dataset.log) ?? 0, hung.has(lane.dataset.log));
  }

  span() {
    if (this.isRunning) return Math.max(1, (this.now - this.from) / 1000);
    const ends = this.lanes.map((lane) => Number(lane.querySelector(".lane-life")?.style.getPropertyValue("--b")) || 0);
    return Math.max(1, ...ends);
  }

  drawAxis(span) {
    if (!this.axis) return;
    const wanted = this.lanes.some((lane) => lane.querySelector(".lane-life")) ? ticks(span, this.from) : [];
    this.axis.replaceChildren(
      ...wanted.map(([at, label]) => {
        const tick = Object.assign(document.createElement("span"), { textContent: label });
        tick.style.setProperty("--a", at);
        return tick;
      }),
    );
  }

  silence(lane, seconds, isStuck) {
    const isSilent = seconds >= Math.max(SILENT_AFTER_S, Number(lane.dataset.least)); // some only speak once a minute
    lane.dataset.silence = isSilent ? Math.floor(seconds) : "";
    lane.classList.toggle("lane-stuck", isSilent && isStuck);
    lane.querySelector(".lane-silence").textContent = isSilent ? `silent ${duration(seconds)}` : "";
    const bar = lane.querySelector(".lane-bar");
    let gap = bar.querySelector(".lane-since");
    if (!isSilent) return void gap?.remove();
    gap ??= bar.appendChild(Object.assign(document.createElement("i"), { className: "lane-gap lane-silent lane-since" }));
    gap.style.setProperty("--a", Math.max(0, (lane.dataset.written - this.from) / 1000));
    gap.style.setProperty("--b", "var(--now)");
  }

  /** Bytes have come: a silence that was long enough to be seen stays on the bar. */
  heard(lane) {
    const [begin, end] = [Number(lane.dataset.written), this.now].map((at) => (at - this.from) / 1000);
    lane.dataset.written = this.now;
    if (lane.dataset.state !== "Running" || end - begin < Number(lane.dataset.least)) return;
    lane.querySelector(".lane-bar").append(part("lane-gap lane-silent", Math.max(0, begin), end));
    this.explain(lane);
  }

  /** A lane's bar as the hub tells it: the life of its process, and the silences in it. */
  draw(lane, { bar, gaps, tone }) {
    const parts = [];
    if (bar) parts.push(part(`lane-life th-tone-${tone}`, bar[0], bar[1] ?? "var(--now)"));
    for (const [begin, end, word] of gaps) parts.push(part(`lane-gap lane-${word}`, begin, end));
    const since = lane.querySelector(".lane-since");
    lane.querySelector(".lane-bar").replaceChildren(...parts, ...(since ? [since] : []));
    this.explain(lane);
  }

  explain(lane) {
    for (const gap of lane.querySelectorAll(".lane-gap:not(.lane-since)")) {
      const [begin, end] = ["--a", "--b"].map((name) => Number(gap.style.getPropertyValue(name)));
      const what = gap.classList.contains("lane-unheard") ? "not heard of" : "silent";
      gap.title = `${what} for ${duration(end - begin)}, until ${clock(this.from + end * 1000)}`;
    }
  }
}

function part(className, begin, end) {
  const element = Object.assign(document.createElement("i"), { className });
  element.style.setProperty("--a", begin);
  element.style.setProperty("--b", end);
  return element;
}

function short(seconds) {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${seconds / 60} min`;
  return seconds < 172_800 ? `${seconds / 3600} h` : `${seconds / 86_400} d`;
}

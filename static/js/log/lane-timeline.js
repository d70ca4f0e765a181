// The timeline of a run's lanes, by the hub's clock: its axis, the bars on it, and how long each rank has been silent.
import { formatDateTime, formatDuration } from "../formats.js";

const TICK_STEPS_S = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400, 172_800, 604_800,
];
const MAX_TICKS = 4;
const SILENT_AFTER_S = 10;
const STUCK_AFTER_S = 20;
const STUCK_FACTOR = 4;

/** Returns ticks [second, label] for an axis of `span` seconds that begins at `from` (Unix time in milliseconds). */
export function elapsedTicks(span, from) {
  const step =
    TICK_STEPS_S.find((seconds) => span / seconds <= MAX_TICKS) ?? Math.ceil(span / MAX_TICKS / 604_800) * 604_800;
  const ticks = [[0, new Date(from).toLocaleTimeString(undefined, { hour12: false })]];
  for (let at = step; at < span * 0.86; at += step) if (at > span * 0.22) ticks.push([at, `+${formatElapsed(at)}`]);
  return ticks;
}

/**
 * Returns the set of running ranks that have been silent far longer than their peers. `silences`: log name -> seconds.
 */
export function stuckRanks(silences) {
  const sorted = [...silences.values()].sort((left, right) => left - right);
  if (sorted.length < 2) return new Set();
  return new Set(
    [...silences]
      .filter(([, seconds]) => {
        const others = sorted.toSpliced(sorted.indexOf(seconds), 1);
        return seconds >= STUCK_AFTER_S && seconds >= STUCK_FACTOR * others[Math.floor((others.length - 1) / 2)];
      })
      .map(([name]) => name),
  );
}

export class LaneTimeline {
  /** `element`: the lanes with their times. When htmx replaces it, make a new timeline. */
  constructor(element) {
    this.element = element;
    this.start = Number(element.dataset.from);
    this.clockOffset = Number(element.dataset.now) - Date.now(); // between the hub's clock and this browser's
    this.axis = element.querySelector(".lanes-axis");
    this.lanes = [...element.querySelectorAll("[data-rank]")];
    for (const lane of this.lanes) this.describeGaps(lane);
  }

  get hubNow() {
    return Date.now() + this.clockOffset;
  }

  get isRunning() {
    return this.lanes.some((lane) => lane.dataset.state === "Running");
  }

  /** Takes over the times of a new answer from the hub. */
  sync({ from_ms: from, now_ms: now, failed_s: failed }) {
    this.start = from;
    this.clockOffset = now - Date.now();
    if (failed === null) return;
    this.element.dataset.failed = failed;
    this.element.style.setProperty("--fail", failed);
  }

  /** Call it once a second: the axis grows, and so do the silences. */
  tick() {
    const span = this.span();
    this.element.style.setProperty("--span", span);
    this.element.style.setProperty("--now", span);
    this.drawAxis(span);
    const running = this.lanes.filter((lane) => lane.dataset.state === "Running" && lane.dataset.written);
    const silences = new Map(running.map((lane) => [lane.dataset.log, (this.hubNow - lane.dataset.written) / 1000]));
    const stuck = stuckRanks(silences);
    for (const lane of this.lanes)
      this.showSilence(lane, silences.get(lane.dataset.log) ?? 0, stuck.has(lane.dataset.log));
  }

  span() {
    if (this.isRunning) return Math.max(1, (this.hubNow - this.start) / 1000);
    const ends = this.lanes.map((lane) => Number(lane.querySelector(".lane-life")?.style.getPropertyValue("--b")) || 0);
    return Math.max(1, ...ends);
  }

  drawAxis(span) {
    if (!this.axis) return;
    const ticks = this.lanes.some((lane) => lane.querySelector(".lane-life")) ? elapsedTicks(span, this.start) : [];
    this.axis.replaceChildren(
      ...ticks.map(([at, label]) => {
        const tick = Object.assign(document.createElement("span"), { textContent: label });
        tick.style.setProperty("--a", at);
        return tick;
      }),
    );
  }

  showSilence(lane, seconds, isStuck) {
    // Some ranks normally write only once a minute.
    const isSilent = seconds >= Math.max(SILENT_AFTER_S, Number(lane.dataset.least));
    lane.dataset.silence = isSilent ? Math.floor(seconds) : "";
    lane.classList.toggle("lane-stuck", isSilent && isStuck);
    lane.querySelector(".lane-silence").textContent = isSilent ? `silent ${formatDuration(seconds)}` : "";
    const bar = lane.querySelector(".lane-bar");
    let gap = bar.querySelector(".lane-since");
    if (!isSilent) return void gap?.remove();
    gap ??= bar.appendChild(
      Object.assign(document.createElement("i"), { className: "lane-gap lane-silent lane-since" }),
    );
    gap.style.setProperty("--a", Math.max(0, (lane.dataset.written - this.start) / 1000));
    gap.style.setProperty("--b", "var(--now)");
  }

  /** Bytes have arrived: the silence before them stays on the bar if it was long enough to be visible. */
  recordOutput(lane) {
    const [begin, end] = [Number(lane.dataset.written), this.hubNow].map((at) => (at - this.start) / 1000);
    lane.dataset.written = this.hubNow;
    if (lane.dataset.state !== "Running" || end - begin < Number(lane.dataset.least)) return;
    lane.querySelector(".lane-bar").append(part("lane-gap lane-silent", Math.max(0, begin), end));
    this.describeGaps(lane);
  }

  /** Draws a lane's bar as the hub reports it: the lifetime of its process, and the silences in it. */
  drawBar(lane, { bar, gaps, tone }) {
    const parts = [];
    if (bar) parts.push(part(`lane-life th-tone-${tone}`, bar[0], bar[1] ?? "var(--now)"));
    for (const [begin, end, kind] of gaps) parts.push(part(`lane-gap lane-${kind}`, begin, end));
    const since = lane.querySelector(".lane-since");
    lane.querySelector(".lane-bar").replaceChildren(...parts, ...(since ? [since] : []));
    this.describeGaps(lane);
  }

  describeGaps(lane) {
    for (const gap of lane.querySelectorAll(".lane-gap:not(.lane-since)")) {
      const [begin, end] = ["--a", "--b"].map((name) => Number(gap.style.getPropertyValue(name)));
      const reason = gap.classList.contains("lane-unheard") ? "no contact" : "silent";
      gap.title = `${reason} for ${formatDuration(end - begin)}, until ${formatDateTime(this.start + end * 1000)}`;
    }
  }
}

function part(className, begin, end) {
  const element = Object.assign(document.createElement("i"), { className });
  element.style.setProperty("--a", begin);
  element.style.setProperty("--b", end);
  return element;
}

function formatElapsed(seconds) {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${seconds / 60} min`;
  return seconds < 172_800 ? `${seconds / 3600} h` : `${seconds / 86_400} d`;
}

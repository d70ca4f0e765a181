// Watches which metrics of live runs get new points, and reports them at most once a second.

import { topicSocket } from "../socket.js";

const EVERY_MS = 1000;
const REDUCED_MOTION_MS = 10_000; // for people who prefer reduced motion
const POLL_MS = 20_000; // any message may be lost, also the one about a new child run

export class RunUpdates {
  /**
   * `on`: {added(keys), changed()}. `added` reports metrics with new points, or null: all metrics, and perhaps new
   * runs. `changed` reports that the list of runs or metrics may have changed.
   */
  constructor(on) {
    this.on = on;
    this.stopFunctions = new Map();
    this.due = new Set();
    this.reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
    this.timer = setInterval(() => this.stopFunctions.size && !document.hidden && on.changed(), POLL_MS);
    this.onVisible = () => document.hidden || this.#scheduleNotify();
    document.addEventListener("visibilitychange", this.onVisible);
  }

  /** Watches these runs and no others. */
  setRuns(runs) {
    for (const [run, stop] of this.stopFunctions) {
      if (runs.includes(run)) continue;
      stop();
      this.stopFunctions.delete(run);
    }
    for (const run of runs) {
      if (this.stopFunctions.has(run)) continue;
      // Points may have been added before the socket opens, also the first time.
      this.stopFunctions.set(
        run,
        topicSocket(
          `/ws/runs/${run}/`,
          (message) => this.#handleMessage(message),
          () => this.#add(null),
        ),
      );
    }
  }

  close() {
    clearInterval(this.timer);
    clearTimeout(this.timeout);
    document.removeEventListener("visibilitychange", this.onVisible);
    this.setRuns([]);
  }

  #handleMessage(message) {
    if (message.type === "metrics.added") this.#add(message.keys.length ? message.keys : null);
    else if (message.type === "hint" || message.type === "child.begun") this.#add(null);
    else if (message.type === "run.changed") this.on.changed();
  }

  #add(keys) {
    if (keys === null) this.isAllDue = true;
    else for (const key of keys) this.due.add(key);
    this.#scheduleNotify();
  }

  #scheduleNotify() {
    if (this.timeout || (!this.isAllDue && !this.due.size)) return;
    const since = Date.now() - (this.notifiedAt ?? 0);
    this.timeout = setTimeout(
      () => {
        this.timeout = null;
        if (document.hidden) return;
        const keys = this.isAllDue ? null : [...this.due];
        this.isAllDue = false;
        this.due.clear();
        this.notifiedAt = Date.now();
        this.on.added(keys);
      },
      Math.max(50, (this.reducedMotion.matches ? REDUCED_MOTION_MS : EVERY_MS) - since),
    );
  }
}

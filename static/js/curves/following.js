// What runs log while one looks: calls back with the metrics that have new points, not more often than the eye wants.

import { topicSocket } from "../socket.js";

const EVERY_MS = 1000;
const CALM_MS = 10_000; // for those who asked for less motion
const AGAIN_MS = 20_000; // every message may be lost, the one that tells of a further run too

export class Following {
  /** `on`: {added(keys, or null for all and for runs that came besides), changed()}. */
  constructor(on) {
    this.on = on;
    this.stops = new Map();
    this.due = new Set();
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    this.timer = setInterval(() => this.stops.size && !document.hidden && on.changed(), AGAIN_MS);
    this.look = () => document.hidden || this.#soon();
    document.addEventListener("visibilitychange", this.look);
  }

  /** Follows these runs, and no other. */
  set(runs) {
    for (const [run, stop] of this.stops) {
      if (runs.includes(run)) continue;
      stop();
      this.stops.delete(run);
    }
    for (const run of runs) {
      if (this.stops.has(run)) continue;
      // Much can happen before the socket opens, the first time too.
      this.stops.set(run, topicSocket(`/ws/runs/${run}/`, (message) => this.#heard(message), () => this.#add(null)));
    }
  }

  close() {
    clearInterval(this.timer);
    clearTimeout(this.waiting);
    document.removeEventListener("visibilitychange", this.look);
    this.set([]);
  }

  #heard(message) {
    if (message.type === "metrics.added") this.#add(message.keys.length ? message.keys : null);
    else if (message.type === "hint" || message.type === "child.begun") this.#add(null);
    else if (message.type === "run.changed") this.on.changed();
  }

  #add(keys) {
    if (keys === null) this.isAll = true;
    else for (const key of keys) this.due.add(key);
    this.#soon();
  }

  #soon() {
    if (this.waiting || (!this.isAll && !this.due.size)) return;
    const since = Date.now() - (this.toldAt ?? 0);
    this.waiting = setTimeout(() => {
      this.waiting = null;
      if (document.hidden) return;
      const due = this.isAll ? null : [...this.due];
      this.isAll = false;
      this.due.clear();
      this.toldAt = Date.now();
      this.on.added(due);
    }, Math.max(50, (this.calm.matches ? CALM_MS : EVERY_MS) - since));
  }
}

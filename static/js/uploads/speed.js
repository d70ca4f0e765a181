// How fast an upload is, and how long it still takes.

const WINDOW_MS = 10_000;

/** Bytes and files of the last ten seconds. */
export class Speed {
  constructor() {
    this.points = [];
  }

  /** Forgets what was before a pause. */
  reset() {
    this.points = [];
  }

  add(now, bytes, files) {
    this.points.push({ now, bytes, files });
    while (this.points.length > 2 && now - this.points[1].now > WINDOW_MS) this.points.shift();
  }

  /** {bytes, files} per second, null while that is not known. */
  get rate() {
    const first = this.points[0];
    const last = this.points.at(-1);
    if (!first || last.now - first.now < 1000) return null;
    const seconds = (last.now - first.now) / 1000;
    return { bytes: (last.bytes - first.bytes) / seconds, files: (last.files - first.files) / seconds };
  }

  /** Seconds until so many bytes and files are sent, null while that is not known. Whichever takes longer counts: a
   * thousand small files cost more than their bytes. */
  secondsLeft(bytes, files) {
    const { rate } = this;
    if (!rate || rate.files <= 0 || (rate.bytes <= 0 && bytes > 0)) return null;
    return Math.max(bytes > 0 ? bytes / rate.bytes : 0, files / rate.files);
  }
}

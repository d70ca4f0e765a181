// Sends a folder to the hub: tells it which files there are, and sends those that it lacks, several at a time. Whatever
// interrupts this, it goes on with what is missing.

export const NAMED_AT_ONCE = 500;
export const PIECE_BYTES = 4 * 1024 * 1024;
const WORKERS = 6;
const RETRIES = 4;
const FIRST_PAUSE_MS = 500;

/** The states of an upload; after `interrupted` and `paused`, `run` goes on. */
export const State = Object.freeze({
  COMPARING: "comparing",
  SENDING: "sending",
  PAUSED: "paused",
  INTERRUPTED: "interrupted",
  FINISHING: "finishing",
  FINISHED: "finished",
});

/** `files`: [{path, size, modified_at, file}]; `hub`: a HubRequests; `onChange` is called often. */
export class Upload {
  constructor(files, hub, onChange, wait = (ms) => new Promise((done) => setTimeout(done, ms))) {
    this.files = files;
    this.hub = hub;
    this.onChange = onChange;
    this.wait = wait;
    this.state = State.COMPARING;
    this.problem = "";
    this.refused = new Map(); // path -> reason
    this.totalBytes = files.reduce((sum, file) => sum + file.size, 0);
    this.sentBytes = 0; // by this page
    this.doneFiles = 0;
    this.doneBytes = 0; // with what the hub had before
    this.version = null;
  }

  /** Sends what the hub lacks, and makes the version unless files were refused: then `finish` does. */
  run() {
    // What an earlier turn still does would be counted twice.
    this.turn = (this.turn ?? Promise.resolve()).then(() => this.#run());
    return this.turn;
  }

  pause() {
    this.#change(State.PAUSED);
    this.abort.abort();
  }

  get isComplete() {
    return !this.missing?.length && this.doneFiles + this.refused.size === this.files.length;
  }

  async finish() {
    this.#change(State.FINISHING);
    await this.hub.finish(this.files.length - this.refused.size);
    this.#change(State.FINISHED);
  }

  async #run() {
    this.abort = new AbortController();
    try {
      await this.#compare();
      await this.#sendAll();
      if (!this.refused.size) await this.finish();
      else this.#change(State.SENDING);
    } catch (error) {
      this.abort.abort();
      if (this.state === State.PAUSED) return;
      this.problem = error.message;
      this.#change(State.INTERRUPTED);
    }
  }

  async #compare() {
    this.problem = "";
    this.#change(State.COMPARING);
    this.version = await this.hub.begin();
    this.doneFiles = this.doneBytes = 0;
    this.refused.clear();
    const missing = [];
    for (let start = 0; start < this.files.length; start += NAMED_AT_ONCE) {
      this.abort.signal.throwIfAborted();
      const named = this.files.slice(start, start + NAMED_AT_ONCE);
      const facts = named.map(({ path, size, modified_at }) => ({ path, size, modified_at }));
      const answer = await this.#retried(() => this.hub.compare(facts));
      for (const { path, reason } of answer.refused) this.refused.set(path, reason);
      const offsets = new Map(answer.missing.map(({ path, offset }) => [path, offset]));
      for (const file of named) {
        if (this.refused.has(file.path)) continue;
        if (offsets.has(file.path)) missing.push({ file, offset: offsets.get(file.path) });
        else this.#add(file.size, 1, false);
      }
      this.onChange();
    }
    this.missing = missing;
  }

  async #sendAll() {
    this.#change(State.SENDING);
    const work = async () => {
      for (let next = this.missing.shift(); next; next = this.missing.shift()) {
        this.abort.signal.throwIfAborted();
        await this.#send(next.file, next.offset);
      }
    };
    const workers = Array.from({ length: WORKERS }, () =>
      work().catch((error) => {
        // The others end, too, before anything else is done.
        this.abort.abort();
        throw error;
      }),
    );
    const ends = await Promise.allSettled(workers);
    const failures = ends.filter(({ status }) => status === "rejected").map(({ reason }) => reason);
    const first = failures.find(({ name }) => name !== "AbortError") ?? failures[0];
    if (first) throw first;
  }

  async #send(file, offset) {
    this.#add(offset, 0, false);
    let start = offset;
    try {
      do {
        const end = Math.min(start + PIECE_BYTES, file.size);
        await this.#retried(() => this.hub.put(file, start, end, this.abort.signal));
        this.#add(end - start, 0, true);
        start = end;
      } while (start < file.size);
      this.#add(0, 1, false);
    } catch (error) {
      // It begins anew, or at the hub's offset, when the hub is asked again.
      this.#add(-start, 0, false);
      this.#refuse(file, error);
    }
  }

  /** Throws the error again unless it is about this file alone. */
  #refuse(file, error) {
    if (error.name === "NotReadableError" || error.name === "NotFoundError") {
      this.refused.set(file.path, "it was changed or removed while it was sent: choose the folder again");
    } else if (error.status === 400 || error.status === 413) {
      this.refused.set(file.path, error.message);
    } else throw error;
    this.onChange();
  }

  /** Calls it again while that may help; the pauses grow. */
  async #retried(call) {
    for (let turn = 0; ; turn += 1) {
      try {
        return await call();
      } catch (error) {
        if (!error.mayPass || error.status === 401 || turn === RETRIES) throw error;
      }
      await this.wait(FIRST_PAUSE_MS * 2 ** turn);
      this.abort.signal.throwIfAborted();
    }
  }

  #add(bytes, files, isSent) {
    this.doneBytes += bytes;
    this.doneFiles += files;
    if (isSent) this.sentBytes += bytes;
    this.onChange();
  }

  #change(state) {
    this.state = state;
    this.onChange();
  }
}

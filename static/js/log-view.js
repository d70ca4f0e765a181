// The log viewer of the run page: lanes at the left, the chosen log at the right.
import { mount } from "./app.js";
import { bytes } from "./formats.js";
import { drawRow } from "./log/draw.js";
import { Feed } from "./log/feed.js";
import { Find, firstWith } from "./log/find.js";
import { pressed } from "./log/keys.js";
import { Lanes, lastLine } from "./log/lanes.js";
import { Lines } from "./log/lines.js";
import { byteOfHash, remember, remembered } from "./log/memory.js";
import { Results } from "./log/results.js";
import { Rows } from "./log/rows.js";
import { topicSocket } from "./socket.js";

/** Of a larger log only the end is loaded into the page; the whole of it can be downloaded. */
const MOST_BYTES = 192 * 1024 * 1024;
const TRACEBACK = "Traceback (most recent call last)";

class LogView {
  constructor(root) {
    this.root = root;
    this.attempt = Number(root.dataset.attempt);
    this.picked = new URLSearchParams(location.search).has("log"); // by hand: then nothing else is shown by itself
    this.rows = new Rows(this.part("scroller"), { draw: (line) => this.draw(line), onFollow: () => this.showFollow() });
    this.find = new Find(() => this.showFound());
    this.lines = new Lines();
    this.seenCount = 0;
    this.state = { size: 0, complete: false };
    this.name = root.dataset.log;
    this.lanes = new Lanes(this.part("lanes"), {
      url: root.dataset.lanes,
      onChoose: (name) => this.open(name, true),
      onSwap: () => this.suggested(),
    });
    this.results = new Results(root, {
      url: `${root.dataset.url}search/`,
      attempt: () => this.attempt,
      title: (name) => this.lanes.title(name),
      onOpen: (hit, asked) => this.openHit(hit, asked),
    });
    this.bind();
    this.open(root.dataset.log, false);
    this.stopSocket = topicSocket(root.dataset.socket, (message) => this.receive(message), () => {
      this.feed?.fetch();
      this.lanes.ask(); // ranks may have started since the page was made
    });
  }

  close() {
    this.stopSocket();
    this.feed?.stop();
    this.find.clear();
    this.rows.close();
    this.lanes.close();
    this.results.close();
    this.keys.abort();
  }

  part(name) {
    return this.root.querySelector(`[data-part="${name}"]`);
  }

  /** Show the log `name`, from `byte` on if given, which begins line `number`; `chosen` by hand puts it into the address too. */
  open(name, chosen, { byte = null, number = null } = {}) {
    if (!name) return;
    this.name = name;
    this.picked ||= chosen;
    this.state = { size: 0, complete: false };
    this.lanes.choose(name);
    this.target = chosen ? byte : byteOfHash();
    this.targetNumber = number;
    this.side(false);
    if (chosen) this.tellAddress(byte);
    this.part("name").textContent = name;
    this.part("download").href = `${this.address(name)}?${new URLSearchParams({ attempt: this.attempt, download: 1 })}`;
    this.load(Number(this.lanes.lane(name)?.dataset.size ?? 0));
  }

  /** Begin to read, near the end where the log is too large for a page. */
  load(size) {
    this.feed?.stop();
    this.find.clear();
    this.markedLine = null;
    const base = this.target === null ? Math.max(0, size - MOST_BYTES) : Math.max(0, Math.min(this.target, size) - MOST_BYTES / 2);
    this.lines = new Lines(base);
    this.seenCount = 0;
    this.rows.following = this.target === null;
    this.rows.use(this.lines);
    this.feed = new Feed({
      url: this.address(this.name),
      attempt: this.attempt,
      lines: this.lines,
      onBytes: () => this.grown(),
      onState: (state) => this.told(state),
    });
    this.feed.fetch();
    this.showFollow();
    this.startFind();
    this.part("cut").hidden = base === 0;
    this.part("cut").textContent = base ? `The first ${bytes(base)} are not shown here; download the log to have all of it.` : "";
  }

  /** A line that was found in all logs. */
  openHit(hit, asked) {
    this.side(false);
    this.part("find").value = asked.regex ? "" : asked.q;
    if (hit.log === this.name && hit.offset >= this.lines.base) {
      this.targetNumber = hit.line;
      this.startFind();
      this.tellAddress(hit.offset);
      this.jump(hit.offset);
    } else {
      this.open(hit.log, true, { byte: hit.offset, number: hit.line });
    }
  }

  /** On a narrow screen the list of logs, or of lines found, lies over the log while it is open. */
  side(isOpen) {
    this.root.classList.toggle("log-side-open", isOpen);
    this.part("pick").setAttribute("aria-expanded", isOpen);
    this.lanes.label(this.part("pick"));
  }

  address(name) {
    return this.root.dataset.url + name.split("/").map(encodeURIComponent).join("/");
  }

  /** What is shown, and from which byte on, stands in the page's address. */
  tellAddress(byte) {
    const attempt = this.root.dataset.latest === String(this.attempt) ? {} : { attempt: this.attempt };
    const query = new URLSearchParams({ ...attempt, log: this.name });
    history.replaceState(null, "", `?${query}${byte === null ? "" : `#b=${byte}`}`);
  }

  receive(message) {
    if (message.type === "log.appended" && message.attempt === this.attempt) {
      this.lanes.receive(message);
      if (message.name === this.name) this.feed?.receive(message);
    } else if (message.type === "run.changed" || message.type === "hint") {
      if (message.attempt > this.attempt && this.root.dataset.latest === String(this.attempt)) this.begin(message.attempt);
      this.feed?.fetch(); // learns whether the log is complete, and what was missed
      this.lanes.ask();
    } else if (message.type === "member.changed") {
      this.lanes.ask();
    }
  }

  /** The run was placed, or tries again: what is shown is its latest attempt. */
  begin(attempt) {
    this.attempt = attempt;
    this.root.dataset.latest = attempt;
    this.picked = false;
    this.name = null;
    this.feed?.stop();
    this.lanes.choose(null);
  }

  /** The server says which log tells most now; it is shown unless the reader is busy with another. */
  suggested() {
    const name = this.lanes.suggestion;
    if (name && name !== this.name && (!this.name || (!this.picked && this.rows.following))) this.open(name, false);
  }

  grown() {
    if (this.lines.bytes.length > 2 * MOST_BYTES) {
      this.load(this.lines.end);
      return;
    }
    if (this.target !== null && this.lines.end > this.target) this.jump(this.target);
    this.rows.changed();
    this.showLater();
    if (this.find.needle) this.find.more();
  }

  /** Show the line of a byte, as soon as it is here. */
  jump(byte) {
    this.target = byte;
    if (byte === null || this.lines.end <= byte) return;
    this.target = null;
    const line = this.lines.at(byte);
    if (this.targetNumber !== null) this.lines.renumber(line, this.targetNumber);
    this.mark(line);
  }

  mark(line) {
    this.markedLine = line;
    requestAnimationFrame(() => {
      this.rows.show(line, "start");
      this.rows.redraw();
    });
  }

  /** Words around the log change at most ten times a second, however fast the bytes come. */
  showLater() {
    this.later ??= setTimeout(() => {
      this.later = null;
      this.showFollow();
      this.showState();
      const from = Math.max(0, this.lines.bytes.length - 2048);
      this.lanes.tell(this.name, lastLine(new TextDecoder().decode(this.lines.bytes.slice(from, this.lines.bytes.length))));
    }, 100);
  }

  told(state) {
    this.state = state;
    this.showState();
    this.showFollow();
  }

  draw(line) {
    const isCurrent = line === this.find.line || line === this.markedLine;
    return drawRow(this.lines, line, this.find.needle, isCurrent);
  }

  // Words and buttons around the log.

  bind() {
    this.keys = new AbortController();
    const { signal } = this.keys;
    const field = this.part("find");
    field.addEventListener("input", () => this.startFind());
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.goFound(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") {
        field.value = "";
        this.startFind();
        this.part("scroller").focus();
      }
    });
    this.part("next").addEventListener("click", () => this.goFound(1));
    this.part("previous").addEventListener("click", () => this.goFound(-1));
    this.part("follow").addEventListener("click", () => this.rows.follow(!this.rows.following));
    this.part("paused").addEventListener("click", () => this.rows.follow(true));
    this.part("traceback").addEventListener("click", () => this.showTraceback());
    this.part("wrap").addEventListener("click", () => this.setWrap(!this.rows.wrap));
    this.setWrap(remembered("trainhub.wrap") === "yes");
    this.part("pick").addEventListener("click", () => this.side(!this.root.classList.contains("log-side-open")));
    document.addEventListener("keydown", (event) => pressed(event, this), { signal });
    addEventListener("hashchange", () => this.jump(byteOfHash()), { signal });
  }

  setWrap(wrap) {
    this.part("scroller").classList.toggle("log-wrap", wrap);
    this.part("wrap").setAttribute("aria-pressed", wrap);
    remember("trainhub.wrap", wrap ? "yes" : "no");
    this.rows.setWrap(wrap);
  }

  startFind() {
    this.find.start(this.part("find").value, this.lines);
    this.rows.redraw();
  }

  goFound(step) {
    const line = this.find.go(step, this.rows.firstVisible());
    if (line === null) return;
    this.rows.show(line);
    this.rows.redraw();
  }

  async showTraceback() {
    const line = await firstWith(TRACEBACK, this.lines);
    this.part("note").textContent = line < 0 ? "no traceback in this log" : "";
    if (line >= 0) this.mark(line);
  }

  showFound() {
    this.part("found").textContent = this.find.label;
    for (const button of [this.part("next"), this.part("previous")]) button.disabled = this.find.hits.length === 0;
  }

  showFollow() {
    const { following } = this.rows;
    this.part("follow").setAttribute("aria-pressed", following);
    if (following) this.seenCount = this.lines.count;
    const unseen = this.lines.count - this.seenCount;
    const paused = this.part("paused");
    paused.hidden = following || unseen <= 0;
    paused.querySelector("span").textContent = `Paused, ${unseen.toLocaleString("en")} new ${unseen === 1 ? "line" : "lines"}`;
  }

  showState() {
    const { size, complete, error } = this.state;
    const loading = this.lines.end < size;
    const words = [`${this.lines.count.toLocaleString("en")} lines`, bytes(Math.max(size, this.lines.end))];
    if (loading) words.push(`loading ${Math.floor((100 * this.lines.end) / size)} %`);
    else if (complete) words.push("complete");
    this.part("state").textContent = words.join(" · ");
    this.part("error").textContent = error ?? "";
    this.part("error").hidden = !error;
    this.part("nothing").hidden = this.lines.count > 0 || loading;
    this.part("nothing").textContent = complete ? "This log is empty." : "Nothing written yet.";
  }
}

mount("log-view", (root) => {
  const view = new LogView(root);
  return () => view.close();
});

// The log viewer of the run page: lanes on the left, the open log on the right.
import { mount } from "./app.js";
import { formatBytes } from "./formats.js";
import { handleKey } from "./log/keys.js";
import { Lanes, lastLine } from "./log/lanes.js";
import { lineElement } from "./log/line-element.js";
import { LogFeed } from "./log/log-feed.js";
import { LogLines } from "./log/log-lines.js";
import { LogToolbar } from "./log/log-toolbar.js";
import { byteFromHash } from "./log/preferences.js";
import { SearchResults } from "./log/search-results.js";
import { TextFinder, findFirst } from "./log/text-finder.js";
import { VirtualRows } from "./log/virtual-rows.js";
import { topicSocket } from "./socket.js";

/** Only the end of a larger log is loaded into the page. The whole log can be downloaded. */
const MAX_BYTES = 192 * 1024 * 1024;
const TAIL_BYTES = 2048; // enough to contain the last line of most logs
const STATUS_EVERY_MS = 100;
const TRACEBACK = "Traceback (most recent call last)";

class LogView {
  constructor(root) {
    this.root = root;
    this.attempt = Number(root.dataset.attempt);
    // Once the reader has chosen a log, the viewer opens no other by itself.
    this.isChosenByReader = new URLSearchParams(location.search).has("log");
    this.finder = new TextFinder(() => this.toolbar?.showHits(this.finder));
    this.lines = new LogLines();
    this.state = { size: 0, complete: false };
    this.name = root.dataset.log;
    this.rows = new VirtualRows(this.part("scroller"), {
      draw: (line) => this.draw(line),
      onFollow: () => this.toolbar.showFollow(),
    });
    this.toolbar = new LogToolbar(this);
    this.lanes = new Lanes(this.part("lanes"), {
      url: root.dataset.lanes,
      onChoose: (name) => this.open(name, true),
      onUpdate: () => this.openSuggestion(),
    });
    this.results = new SearchResults(root, {
      url: `${root.dataset.url}search/`,
      attempt: () => this.attempt,
      title: (name) => this.lanes.title(name),
      onOpen: (hit, query) => this.openHit(hit, query),
    });
    this.listeners = new AbortController();
    const { signal } = this.listeners;
    document.addEventListener("keydown", (event) => handleKey(event, this), { signal });
    addEventListener("hashchange", () => this.jump(byteFromHash()), { signal });
    this.open(root.dataset.log, false);
    this.stopSocket = topicSocket(
      root.dataset.socket,
      (message) => this.receive(message),
      () => {
        this.feed?.fetch();
        this.lanes.requestRefresh(); // ranks may have started since the server rendered the page
      },
    );
  }

  close() {
    this.stopSocket();
    this.feed?.stop();
    this.finder.clear();
    this.rows.close();
    this.lanes.close();
    this.results.destroy();
    this.listeners.abort();
    clearTimeout(this.statusTimer);
  }

  part(name) {
    return this.root.querySelector(`[data-part="${name}"]`);
  }

  /**
   * Opens the log `name`, at `byte` if given, which begins line `number`. A choice of the reader changes the address.
   */
  open(name, isChosen, { byte = null, number = null } = {}) {
    if (!name) return;
    this.name = name;
    this.isChosenByReader ||= isChosen;
    this.state = { size: 0, complete: false };
    this.lanes.setCurrent(name);
    this.target = isChosen ? byte : byteFromHash();
    this.targetNumber = number;
    this.setSideOpen(false);
    if (isChosen) this.updateAddress(byte);
    this.part("name").textContent = this.lanes.title(name);
    this.part("name").title = name;
    const query = new URLSearchParams({ attempt: this.attempt, download: 1 });
    this.part("download").href = `${this.logUrl(name)}?${query}`;
    this.load(Number(this.lanes.lane(name)?.dataset.size ?? 0));
  }

  /** Starts to read the log, near its end or the target if it is too large for a page. */
  load(size) {
    this.feed?.stop();
    this.finder.clear();
    this.markedLine = null;
    const base =
      this.target === null ? Math.max(0, size - MAX_BYTES) : Math.max(0, Math.min(this.target, size) - MAX_BYTES / 2);
    this.lines = new LogLines(base);
    this.toolbar.resetUnread();
    this.rows.isFollowing = this.target === null;
    this.rows.setLines(this.lines);
    this.feed = new LogFeed({
      url: this.logUrl(this.name),
      attempt: this.attempt,
      lines: this.lines,
      onBytes: () => this.handleGrowth(),
      onState: (state) => this.setState(state),
    });
    this.feed.fetch();
    this.toolbar.showFollow();
    this.startFind();
    this.part("cut").hidden = base === 0;
    this.part("cut").textContent = base
      ? `The first ${formatBytes(base)} are not shown here. Download the log to read all of it.`
      : "";
  }

  /** Opens the line of a hit of the search in all logs. */
  openHit(hit, query) {
    this.setSideOpen(false);
    this.part("find").value = query.regex ? "" : query.q;
    if (hit.log === this.name && hit.offset >= this.lines.base) {
      this.targetNumber = hit.line;
      this.startFind();
      this.updateAddress(hit.offset);
      this.jump(hit.offset);
    } else {
      this.open(hit.log, true, { byte: hit.offset, number: hit.line });
    }
  }

  /** Opens or closes the list of logs or of search results, which covers the log on a narrow screen. */
  setSideOpen(isOpen) {
    this.root.classList.toggle("log-side-open", isOpen);
    this.part("pick").setAttribute("aria-expanded", isOpen);
    this.lanes.describeCurrent(this.part("pick"));
  }

  logUrl(name) {
    return this.root.dataset.url + name.split("/").map(encodeURIComponent).join("/");
  }

  /** Puts the open log, and the offset at which it is opened, into the page's address. */
  updateAddress(byte) {
    const attempt = this.root.dataset.latest === String(this.attempt) ? {} : { attempt: this.attempt };
    const query = new URLSearchParams({ ...attempt, log: this.name });
    history.replaceState(null, "", `?${query}${byte === null ? "" : `#b=${byte}`}`);
  }

  receive(message) {
    if (message.type === "log.appended" && message.attempt === this.attempt) {
      this.lanes.receive(message);
      if (message.name === this.name) this.feed?.receive(message);
    } else if (message.type === "run.changed" || message.type === "hint") {
      const isLatest = this.root.dataset.latest === String(this.attempt);
      if (message.attempt > this.attempt && isLatest) this.showAttempt(message.attempt);
      this.feed?.fetch(); // learns whether the log is complete, and what was missed
      this.lanes.requestRefresh();
    } else if (message.type === "member.changed") {
      this.lanes.requestRefresh();
    }
  }

  /** Switches to the latest attempt: the run was placed, or is tried again. */
  showAttempt(attempt) {
    this.attempt = attempt;
    this.root.dataset.latest = attempt;
    this.isChosenByReader = false;
    this.name = null;
    this.feed?.stop();
    this.lanes.setCurrent(null);
  }

  /** Opens the log that the server suggests now, unless the reader is busy with another. */
  openSuggestion() {
    const name = this.lanes.suggestion;
    const isBusy = this.name && (this.isChosenByReader || !this.rows.isFollowing);
    if (name && name !== this.name && !isBusy) this.open(name, false);
  }

  handleGrowth() {
    if (this.lines.bytes.length > 2 * MAX_BYTES) {
      this.load(this.lines.end);
      return;
    }
    if (this.target !== null && this.lines.end > this.target) this.jump(this.target);
    this.rows.scheduleLayout();
    this.showStatusSoon();
    if (this.finder.needle) this.finder.resume();
  }

  /** Shows the line that contains `byte`, as soon as it has arrived. */
  jump(byte) {
    this.target = byte;
    if (byte === null || this.lines.end <= byte) return;
    this.target = null;
    const line = this.lines.at(byte);
    if (this.targetNumber !== null) this.lines.renumber(line, this.targetNumber);
    this.markLine(line);
  }

  markLine(line) {
    this.markedLine = line;
    requestAnimationFrame(() => {
      this.rows.scrollTo(line, "start");
      this.rows.redraw();
    });
  }

  /** Updates the texts around the log at most ten times a second, however fast the bytes arrive. */
  showStatusSoon() {
    this.statusTimer ??= setTimeout(() => {
      this.statusTimer = null;
      this.toolbar.showFollow();
      this.toolbar.showState();
      const { bytes } = this.lines;
      const tail = bytes.slice(Math.max(0, bytes.length - TAIL_BYTES), bytes.length);
      this.lanes.showLastLine(this.name, lastLine(new TextDecoder().decode(tail)));
    }, STATUS_EVERY_MS);
  }

  setState(state) {
    this.state = state;
    this.toolbar.showState();
    this.toolbar.showFollow();
  }

  draw(line) {
    const isCurrent = line === this.finder.line || line === this.markedLine;
    return lineElement(this.lines, line, this.finder.needle, isCurrent);
  }

  startFind() {
    this.finder.start(this.part("find").value, this.lines);
    this.rows.redraw();
  }

  moveToHit(step) {
    const line = this.finder.move(step, this.rows.firstVisible());
    if (line === null) return;
    this.rows.scrollTo(line);
    this.rows.redraw();
  }

  async showTraceback() {
    const line = await findFirst(TRACEBACK, this.lines);
    this.part("note").textContent = line < 0 ? "no traceback in this log" : "";
    if (line >= 0) this.markLine(line);
  }
}

mount("log-view", (root) => {
  const view = new LogView(root);
  return () => view.close();
});

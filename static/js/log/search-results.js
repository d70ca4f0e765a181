// The panel of search results from all logs of an attempt, sorted by time or by rank. Its search field is above the
// lanes.
import { formatBytes, formatDateTime } from "../formats.js";
import { hitPieces } from "./hit-text.js";
import { LogSearch } from "./log-search.js";

const TYPING_MS = 300;
const MIN_TYPED = 2;
const STOPPABLE_BYTES = 64 * 2 ** 20; // a smaller search ends before a button is of use
const TRACEBACK = "Traceback (most recent call last)";

export class SearchResults {
  /**
   * `root`: the viewer; `attempt()`: the number of the attempt; `title(log)`: the title of a log;
   * `onOpen(hit, query)` is called to show the line of a hit.
   */
  constructor(root, { url, attempt, title, onOpen }) {
    Object.assign(this, { root, attempt, title, onOpen });
    this.search = new LogSearch({ url, onChange: () => this.drawLater() });
    this.order = "time";
    this.options = { case: false, regex: false };
    this.currentHit = null;
    this.bind();
  }

  destroy() {
    this.search.clear();
    clearTimeout(this.typingTimer);
    cancelAnimationFrame(this.frame);
  }

  part(name) {
    return this.root.querySelector(`[data-part="${name}"]`);
  }

  get isOpen() {
    return !this.part("results").hidden;
  }

  bind() {
    const query = this.part("query");
    query.addEventListener("input", () => {
      clearTimeout(this.typingTimer);
      if (!query.value) this.close();
      else if (query.value.length >= MIN_TYPED) this.typingTimer = setTimeout(() => this.startSearch(), TYPING_MS);
    });
    query.addEventListener("focus", () => this.isOpen && this.root.classList.add("log-side-open"));
    query.addEventListener("keydown", (event) => event.key === "Escape" && (event.preventDefault(), this.close()));
    this.part("search").addEventListener("submit", (event) => {
      event.preventDefault();
      this.startSearch();
    });
    for (const button of this.root.querySelectorAll("[data-option]")) {
      button.addEventListener("click", () => {
        this.setOption(button.dataset.option, !this.options[button.dataset.option]);
        this.startSearch();
      });
    }
    for (const button of this.root.querySelectorAll("[data-order]"))
      button.addEventListener("click", () => this.setOrder(button.dataset.order));
    this.part("first").addEventListener("click", () => this.searchTraceback());
    this.part("leave").addEventListener("click", () => this.close());
    this.part("more")
      .querySelector("button")
      .addEventListener("click", () => (this.search.state === "busy" ? this.search.stop() : this.search.resume()));
    this.part("hits").addEventListener("click", (event) => this.handleClick(event));
  }

  setOption(option, value) {
    this.options[option] = value;
    this.root.querySelector(`[data-option="${option}"]`).setAttribute("aria-pressed", value);
  }

  focus() {
    this.part("query").focus();
    this.part("query").select();
  }

  /** Searches for the text in the field. */
  startSearch() {
    clearTimeout(this.typingTimer);
    const q = this.part("query").value;
    if (!q) return this.close();
    this.currentHit = null;
    this.rows = [];
    this.part("hits").replaceChildren();
    this.setOpen(true);
    this.part("results").setAttribute("aria-busy", true);
    this.search.start({
      q,
      attempt: this.attempt(),
      case: Number(this.options.case),
      regex: Number(this.options.regex),
    });
  }

  searchTraceback() {
    this.part("query").value = TRACEBACK;
    this.setOption("case", true);
    this.setOption("regex", false);
    this.setOrder("time");
    this.opensFirstHit = true;
    this.startSearch();
  }

  /** Ends the search and returns to the lanes. */
  close() {
    clearTimeout(this.typingTimer);
    this.search.clear();
    this.opensFirstHit = false;
    this.part("query").value = "";
    this.setOpen(false);
  }

  setOpen(isOpen) {
    this.part("results").hidden = !isOpen;
    this.root.classList.toggle("log-searching", isOpen);
    this.root.classList.toggle("log-side-open", isOpen); // on a narrow screen it covers the log
  }

  setOrder(order) {
    this.order = order;
    for (const button of this.root.querySelectorAll("[data-order]"))
      button.setAttribute("aria-pressed", button.dataset.order === order);
    this.rows = [];
    this.part("hits").replaceChildren();
    this.drawLater();
  }

  handleClick(event) {
    const row = event.target.closest("[data-hit]");
    if (!row || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    this.openHit(this.rows[row.dataset.hit]);
  }

  openHit(hit) {
    this.currentHit = hit;
    for (const row of this.part("hits").querySelectorAll("[data-hit]"))
      row.toggleAttribute("aria-current", this.rows[row.dataset.hit] === hit);
    this.onOpen(hit, this.search.query);
  }

  drawLater() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      if (this.search.state && this.isOpen) this.draw();
    });
  }

  draw() {
    const { hits } = this.search;
    if (this.opensFirstHit && hits.length) {
      this.opensFirstHit = false;
      this.drawRows();
      this.openHit(hits[0]);
    } else this.drawRows();
    this.showSummary();
  }

  /** Sorted by time, new hits are appended; by rank, they may belong anywhere, so all rows are drawn again. */
  drawRows() {
    const { hits } = this.search;
    const box = this.part("hits");
    const sorted = this.order === "time" ? hits : hits.toSorted(compareByRank);
    const drawnCount = this.order === "time" ? (this.rows?.length ?? 0) : 0;
    if (drawnCount === sorted.length && drawnCount) return;
    if (!drawnCount) box.replaceChildren();
    this.rows = [...sorted];
    const rows = document.createDocumentFragment();
    for (let index = drawnCount; index < sorted.length; index++) {
      if (this.order === "rank" && sorted[index].log !== sorted[index - 1]?.log)
        rows.append(this.heading(sorted[index]));
      rows.append(this.row(sorted[index], index));
    }
    box.append(rows);
  }

  heading(hit) {
    const count = this.search.hits.filter(({ log }) => log === hit.log).length;
    return element(
      "h3",
      "lane-heading",
      this.title(hit.log),
      element(
        "span",
        "",
        [hit.node, `${count.toLocaleString("en")} ${count === 1 ? "line" : "lines"}`].filter(Boolean).join(" · "),
      ),
    );
  }

  row(hit, index) {
    const row = element("a", "hit");
    row.href = `?${new URLSearchParams({ attempt: this.attempt(), log: hit.log })}#b=${hit.offset}`;
    row.dataset.hit = index;
    if (hit === this.currentHit) row.setAttribute("aria-current", "true");
    const at = element("time", "", timeOf(hit));
    at.title = describeTime(hit);
    const title = this.order === "time" ? [element("strong", "th-cut", this.title(hit.log))] : [];
    row.append(
      element("span", "hit-top", ...title, at, element("span", "hit-line", `line ${hit.line.toLocaleString("en")}`)),
      hitText(hit),
    );
    return row;
  }

  showSummary() {
    const { state, hits, logs, total, searched, share, error } = this.search;
    const count = `${hits.length.toLocaleString("en")}${state === "full" ? "+" : ""}`;
    const ranks = new Set(hits.map((hit) => hit.log)).size;
    const where = hits.length ? `in ${ranks} of ${logs} ${logs === 1 ? "log" : "logs"}` : "";
    this.part("told").textContent =
      state === "failed"
        ? "The search failed"
        : hits.length || state !== "busy"
          ? `${count} ${hits.length === 1 ? "line" : "lines"} ${where}`
          : "Searching…";
    this.part("results").setAttribute("aria-busy", state === "busy");
    const progress = this.part("progress");
    progress.hidden = state !== "busy";
    progress.value = share;
    const searchedOf = `${formatBytes(searched)} of ${formatBytes(total)}`;
    const [sentence, button] = {
      busy: [`${searchedOf} searched`, total > STOPPABLE_BYTES ? "Stop" : ""],
      done: [hits.length ? "" : this.describeNoHits(), ""],
      stopped: [`Stopped after ${searchedOf}.`, "Continue"],
      full: [`The first ${count} lines; ${searchedOf} searched.`, "Show more"],
      failed: [error.replace(/^q: /, "The search text "), /^q: /.test(error) ? "" : "Try again"],
    }[state] ?? ["", ""];
    const more = this.part("more");
    more.hidden = !sentence && !button;
    more.classList.toggle("th-tone-failed", state === "failed");
    more.firstElementChild.textContent = sentence;
    more.lastElementChild.textContent = button;
    more.lastElementChild.hidden = !button;
  }

  describeNoHits() {
    const { logs, query } = this.search;
    const where = logs === 1 ? "the log" : `the ${logs} logs`;
    const advice = this.options.case || this.options.regex ? " Try without Aa or .*" : "";
    return `No line in ${where} contains “${query?.q}”.${advice}`;
  }
}

function hitText(hit) {
  const line = element("span", "hit-text");
  for (const { text, isMatch } of hitPieces(hit)) line.append(isMatch ? element("mark", "", text) : text);
  return line;
}

function timeOf(hit) {
  const at = new Date(hit.at).toLocaleTimeString(undefined, { hour12: false });
  return hit.late ? `by ${at}` : at;
}

function describeTime(hit) {
  const at = formatDateTime(Date.parse(hit.at));
  if (hit.late)
    return `Arrived by ${at}. It had waited on its node before, so the time at which it was written is not known.`;
  const accuracy =
    hit.resolution_s < 1
      ? `${Math.max(1, Math.round(hit.resolution_s * 1000))} ms`
      : `${Math.round(hit.resolution_s)} s`;
  return `Arrived at ${at} by the hub's clock, accurate to ${accuracy}`;
}

function compareByRank(left, right) {
  const byLog = left.log < right.log ? -1 : left.log > right.log;
  return rankOf(left) - rankOf(right) || byLog || left.offset - right.offset;
}

const rankOf = (hit) => hit.rank ?? Number.MAX_SAFE_INTEGER;

function element(name, className, ...children) {
  const node = document.createElement(name);
  if (className) node.className = className;
  node.append(...children);
  return node;
}

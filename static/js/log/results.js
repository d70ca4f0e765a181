// The panel of lines found in all logs: asked in the box above the lanes, told as they come, by time or by rank.
import { bytes, clock } from "../formats.js";
import { Search } from "./search.js";

const TYPED_MS = 300;
const SHORTEST_TYPED = 2;
const MOST_BEFORE = 24;
const SHOWN_BEFORE = 12;
const TRACEBACK = "Traceback (most recent call last)";

export class Results {
  /** `root`: the viewer; `attempt()`: whose logs; `title(log)`: its name for people; `onOpen(hit, asked)`: show this line. */
  constructor(root, { url, attempt, title, onOpen }) {
    Object.assign(this, { root, attempt, title, onOpen });
    this.search = new Search({ url, onChange: () => this.drawLater() });
    this.order = "time";
    this.options = { case: false, regex: false };
    this.chosen = null;
    this.bind();
  }

  close() {
    this.search.clear();
    clearTimeout(this.typing);
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
      clearTimeout(this.typing);
      if (!query.value) this.leave();
      else if (query.value.length >= SHORTEST_TYPED) this.typing = setTimeout(() => this.ask(), TYPED_MS);
    });
    query.addEventListener("focus", () => this.isOpen && this.root.classList.add("log-side-open"));
    query.addEventListener("keydown", (event) => event.key === "Escape" && (event.preventDefault(), this.leave()));
    this.part("search").addEventListener("submit", (event) => {
      event.preventDefault();
      this.ask();
    });
    for (const button of this.root.querySelectorAll("[data-option]")) {
      button.addEventListener("click", () => {
        this.set(button.dataset.option, !this.options[button.dataset.option]);
        this.ask();
      });
    }
    for (const button of this.root.querySelectorAll("[data-order]")) button.addEventListener("click", () => this.arrange(button.dataset.order));
    this.part("first").addEventListener("click", () => this.firstTraceback());
    this.part("leave").addEventListener("click", () => this.leave());
    this.part("more").querySelector("button").addEventListener("click", () => (this.search.state === "busy" ? this.search.stop() : this.search.more()));
    this.part("hits").addEventListener("click", (event) => this.clicked(event));
  }

  set(option, value) {
    this.options[option] = value;
    this.root.querySelector(`[data-option="${option}"]`).setAttribute("aria-pressed", value);
  }

  focus() {
    this.part("query").focus();
    this.part("query").select();
  }

  /** Look for what the box says. */
  ask() {
    clearTimeout(this.typing);
    const q = this.part("query").value;
    if (!q) return this.leave();
    this.chosen = null;
    this.drawn = [];
    this.part("hits").replaceChildren();
    this.open(true);
    this.part("results").setAttribute("aria-busy", true);
    this.search.start({ q, attempt: this.attempt(), case: Number(this.options.case), regex: Number(this.options.regex) });
  }

  firstTraceback() {
    this.part("query").value = TRACEBACK;
    this.set("case", true);
    this.set("regex", false);
    this.arrange("time");
    this.opensFirst = true;
    this.ask();
  }

  /** Back to the lanes. */
  leave() {
    clearTimeout(this.typing);
    this.search.clear();
    this.opensFirst = false;
    this.part("query").value = "";
    this.open(false);
  }

  open(isOpen) {
    this.part("results").hidden = !isOpen;
    this.root.classList.toggle("log-searching", isOpen);
    this.root.classList.toggle("log-side-open", isOpen); // on a narrow screen it lies over the log
  }

  arrange(order) {
    this.order = order;
    for (const button of this.root.querySelectorAll("[data-order]")) button.setAttribute("aria-pressed", button.dataset.order === order);
    this.drawn = [];
    this.part("hits").replaceChildren();
    this.drawLater();
  }

  clicked(event) {
    const row = event.target.closest("[data-hit]");
    if (!row || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    this.choose(this.drawn[row.dataset.hit]);
  }

  choose(hit) {
    this.chosen = hit;
    for (const row of this.part("hits").querySelectorAll("[data-hit]")) row.toggleAttribute("aria-current", this.drawn[row.dataset.hit] === hit);
    this.onOpen(hit, this.search.asked);
  }

  drawLater() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      if (this.search.state && this.isOpen) this.draw();
    });
  }

  draw() {
    const { hits } = this.search;
    if (this.opensFirst && hits.length) {
      this.opensFirst = false;
      this.drawRows();
      this.choose(hits[0]);
    } else this.drawRows();
    this.tell();
  }

  /** By time lines only come at the end; by rank they come anywhere. */
  drawRows() {
    const { hits } = this.search;
    const box = this.part("hits");
    const sorted = this.order === "time" ? hits : hits.toSorted((left, right) => rankOf(left) - rankOf(right) || (left.log < right.log ? -1 : left.log > right.log) || left.offset - right.offset);
    const known = this.order === "time" ? (this.drawn?.length ?? 0) : 0;
    if (known === sorted.length && known) return;
    if (!known) box.replaceChildren();
    this.drawn = [...sorted];
    const rows = document.createDocumentFragment();
    for (let index = known; index < sorted.length; index++) {
      if (this.order === "rank" && sorted[index].log !== sorted[index - 1]?.log) rows.append(this.heading(sorted[index]));
      rows.append(this.row(sorted[index], index));
    }
    box.append(rows);
  }

  heading(hit) {
    const count = this.search.hits.filter(({ log }) => log === hit.log).length;
    return element("h3", "lane-heading", this.title(hit.log), element("span", "", [hit.node, `${count.toLocaleString("en")} ${count === 1 ? "line" : "lines"}`].filter(Boolean).join(" · ")));
  }

  row(hit, index) {
    const row = element("a", "hit");
    row.href = `?${new URLSearchParams({ attempt: this.attempt(), log: hit.log })}#b=${hit.offset}`;
    row.dataset.hit = index;
    if (hit === this.chosen) row.setAttribute("aria-current", "true");
    const at = element("time", "", timeOf(hit));
    at.title = explained(hit);
    const who = this.order === "time" ? [element("strong", "th-cut", this.title(hit.log))] : [];
    row.append(element("span", "hit-top", ...who, at, element("span", "hit-line", `line ${hit.line.toLocaleString("en")}`)), marked(hit));
    return row;
  }

  tell() {
    const { state, hits, logs, total, searched, share, error, asked } = this.search;
    const count = `${hits.length.toLocaleString("en")}${state === "full" ? "+" : ""}`;
    const ranks = new Set(hits.map((hit) => hit.log)).size;
    const where = hits.length ? `in ${ranks} of ${logs} ${logs === 1 ? "log" : "logs"}` : "";
    this.part("told").textContent = state === "failed" ? "Not searched" : hits.length || state !== "busy" ? `${count} ${hits.length === 1 ? "line" : "lines"} ${where}` : "Searching…";
    this.part("results").setAttribute("aria-busy", state === "busy");
    const progress = this.part("progress");
    progress.hidden = state !== "busy";
    progress.value = share;
    const [words, button] = {
      busy: [`${bytes(searched)} of ${bytes(total)} searched`, total > 64 * 2 ** 20 ? "Stop" : ""],
      done: [hits.length ? "" : `No line of ${logs === 1 ? "the log" : `the ${logs} logs`} has “${asked?.q}”.${this.options.case || this.options.regex ? " Perhaps without Aa or .* ?" : ""}`, ""],
      stopped: [`Stopped after ${bytes(searched)} of ${bytes(total)}.`, "Go on"],
      full: [`The first ${count} lines; ${bytes(searched)} of ${bytes(total)} searched.`, "Show more"],
      failed: [error.replace(/^q: /, "What you look for "), /^q: /.test(error) ? "" : "Try again"],
    }[state] ?? ["", ""];
    const more = this.part("more");
    more.hidden = !words && !button;
    more.classList.toggle("th-tone-failed", state === "failed");
    more.firstElementChild.textContent = words;
    more.lastElementChild.textContent = button;
    more.lastElementChild.hidden = !button;
  }
}

function marked(hit) {
  const line = element("span", "hit-text");
  const letters = [...hit.text]; // spans count characters, JavaScript counts halves of some
  let at = letters.findIndex((letter) => letter.trim()); // indentation tells little here
  if (hit.spans.length && hit.spans[0][0] - at > MOST_BEFORE) {
    at = hit.spans[0][0] - SHOWN_BEFORE;
    line.append("…");
  }
  for (const [begin, end] of hit.spans) {
    line.append(letters.slice(at, begin).join(""), element("mark", "", letters.slice(begin, end).join("")));
    at = Math.max(at, end);
  }
  line.append(letters.slice(at).join(""));
  return line;
}

function timeOf(hit) {
  const at = new Date(hit.at).toLocaleTimeString(undefined, { hour12: false });
  return hit.late ? `by ${at}` : at;
}

function explained(hit) {
  const at = clock(Date.parse(hit.at));
  if (hit.late) return `It had arrived by ${at}; it had waited on its node before, so when it was written is not known`;
  return `Arrived ${at} by the hub's clock, to ${hit.resolution_s < 1 ? `${Math.max(1, Math.round(hit.resolution_s * 1000))} ms` : `${Math.round(hit.resolution_s)} s`}`;
}

const rankOf = (hit) => hit.rank ?? Number.MAX_SAFE_INTEGER;

function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

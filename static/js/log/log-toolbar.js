// The buttons and texts around the open log: find, follow, wrap, traceback, and how much of the log is loaded.
import { formatBytes } from "../formats.js";
import { readPreference, writePreference } from "./preferences.js";

const WRAP_PREFERENCE = "trainhub.wrap";

export class LogToolbar {
  /** `view`: the LogView whose rows, lines and state it controls and shows. */
  constructor(view) {
    this.view = view;
    this.part = (name) => view.part(name);
    this.resetUnread();
    this.bindFind();
    this.part("follow").addEventListener("click", () => view.rows.setFollowing(!view.rows.isFollowing));
    this.part("paused").addEventListener("click", () => view.rows.setFollowing(true));
    this.part("traceback").addEventListener("click", () => view.showTraceback());
    this.part("wrap").addEventListener("click", () => this.toggleWrap());
    this.part("pick").addEventListener("click", () => {
      view.setSideOpen(!view.root.classList.contains("log-side-open"));
    });
    this.setWrap(readPreference(WRAP_PREFERENCE) === "yes");
  }

  bindFind() {
    const field = this.part("find");
    field.addEventListener("input", () => this.view.startFind());
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.view.moveToHit(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") {
        field.value = "";
        this.view.startFind();
        this.part("scroller").focus();
      }
    });
    this.part("next").addEventListener("click", () => this.view.moveToHit(1));
    this.part("previous").addEventListener("click", () => this.view.moveToHit(-1));
  }

  /** Counts all lines as unread, because another log is loaded. */
  resetUnread() {
    this.readCount = 0;
  }

  toggleWrap() {
    this.setWrap(!this.view.rows.wrap);
  }

  setWrap(wrap) {
    this.part("scroller").classList.toggle("log-wrap", wrap);
    this.part("wrap").setAttribute("aria-pressed", wrap);
    writePreference(WRAP_PREFERENCE, wrap ? "yes" : "no");
    this.view.rows.setWrap(wrap);
  }

  showHits(finder) {
    this.part("found").textContent = finder.label;
    for (const button of [this.part("next"), this.part("previous")]) button.disabled = finder.hits.length === 0;
  }

  showFollow() {
    const { lines, rows } = this.view;
    this.part("follow").setAttribute("aria-pressed", rows.isFollowing);
    if (rows.isFollowing) this.readCount = lines.count;
    const unread = lines.count - this.readCount;
    const paused = this.part("paused");
    paused.hidden = rows.isFollowing || unread <= 0;
    const unit = unread === 1 ? "line" : "lines";
    paused.querySelector("span").textContent = `Paused, ${unread.toLocaleString("en")} new ${unit}`;
  }

  showState() {
    const { lines } = this.view;
    const { size, complete, error } = this.view.state;
    const isLoading = lines.end < size;
    const unit = lines.count === 1 ? "line" : "lines";
    const isUnknown = Boolean(error) && lines.count === 0; // not even whether it is empty
    const words = isUnknown
      ? []
      : [`${lines.count.toLocaleString("en")} ${unit}`, formatBytes(Math.max(size, lines.end))];
    if (isLoading) words.push(`loading ${Math.floor((100 * lines.end) / size)} %`);
    else if (complete) words.push("complete");
    this.part("state").textContent = words.join(" · ");
    this.part("error").textContent = error ?? "";
    this.part("error").hidden = !error;
    this.part("nothing").hidden = lines.count > 0 || isLoading || isUnknown;
    this.part("nothing").textContent = complete ? "This log is empty." : "Nothing written yet.";
  }
}

// The filter field: offers what may come next, and says while one types what cannot be read.
import { mount } from "../app.js";

const WAIT_MS = 120;
const SAID_AFTER_MS = 900;

class Field {
  constructor(bar) {
    this.address = bar.dataset.complete;
    this.input = bar.querySelector("input");
    this.list = bar.querySelector("ul");
    this.clear = bar.querySelector("[data-clear]");
    this.trouble = document.querySelector("#filter-error");
    this.asked = 0;
    this.at = -1;
  }

  listen() {
    this.input.addEventListener("input", () => this.typed());
    this.input.addEventListener("focus", () => this.ask());
    this.input.addEventListener("click", () => this.ask());
    this.input.addEventListener("blur", () => setTimeout(() => this.close(), 150));
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.input.form.addEventListener("submit", () => this.close());
    this.list.addEventListener("pointerdown", (event) => event.preventDefault());
    this.list.addEventListener("click", (event) => this.take(event.target.closest("li")));
    this.clear.addEventListener("click", () => {
      this.input.value = "";
      this.typed();
      this.input.form.requestSubmit();
      this.input.focus();
    });
  }

  typed() {
    this.clear.hidden = !this.input.value;
    this.input.removeAttribute("aria-invalid");
    this.trouble.replaceChildren();
    this.mark([...this.list.children], -1);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), WAIT_MS);
  }

  async ask() {
    const number = ++this.asked;
    const cursor = this.input.selectionStart;
    const query = new URLSearchParams({ filter: this.input.value, at: codePoints(this.input.value, cursor) });
    const answer = await fetch(`${this.address}?${query}`);
    if (!answer.ok || number !== this.asked || document.activeElement !== this.input) return;
    const { begin, offers, error } = await answer.json();
    this.askedFor = query.get("filter");
    this.begin = codeUnits(this.input.value, begin);
    this.cursor = cursor;
    this.open(offers);
    clearTimeout(this.saying);
    // Only once the typing rests: a filter that is half written is no mistake yet.
    if (error && this.input.value) this.saying = setTimeout(() => this.say(error), SAID_AFTER_MS);
  }

  say({ message, position }) {
    const text = this.input.value;
    const from = codeUnits(text, position);
    if (from >= text.trimEnd().length || this.trouble.childElementCount) return;
    const to = from + (text.slice(from).match(/^\S+/)?.[0].length ?? 1);
    const line = element("code", "th-pointed");
    line.append(text.slice(0, from), element("u", "", text.slice(from, to)), text.slice(to));
    const note = element("div", "th-note th-tone-failed");
    const inside = element("div");
    inside.append(line, element("p", "", `${message} (at character ${position + 1}).`));
    note.append(inside);
    this.trouble.replaceChildren(note);
    this.input.setAttribute("aria-invalid", "true");
  }

  open(offers) {
    this.at = -1;
    this.list.replaceChildren(...offers.map((offer, index) => this.offer(offer, index)));
    this.list.hidden = offers.length === 0;
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
    this.input.removeAttribute("aria-activedescendant");
  }

  offer({ text, kind }, index) {
    const item = element("li");
    item.id = `filter-offer-${index}`;
    item.role = "option";
    item.dataset.text = text;
    item.append(element("span", "th-cut", text), element("small", "th-muted", kind));
    return item;
  }

  key(event) {
    const items = [...this.list.children];
    if (event.key === "Escape") this.close();
    else if (this.list.hidden) event.key === "ArrowDown" && this.ask();
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      this.mark(items, (this.at + (event.key === "ArrowDown" ? 1 : -1) + items.length + 1) % (items.length + 1));
    } else if (event.key === "Enter" && items[this.at]) {
      event.preventDefault();
      this.take(items[this.at]);
    } else if (event.key === "Tab" && !event.shiftKey && this.input.selectionStart > 0 && !this.input.value.endsWith(" ")) {
      event.preventDefault();
      this.complete();
    }
  }

  // What is offered may still be for what stood there before the last keys.
  async complete() {
    clearTimeout(this.timer);
    if (this.askedFor !== this.input.value) await this.ask();
    const items = this.list.children;
    this.take(items[this.at] ?? items[0]);
  }

  mark(items, at) {
    this.at = at;
    items.forEach((item, index) => item.setAttribute("aria-selected", String(index === at)));
    items[at]?.scrollIntoView({ block: "nearest" });
    if (items[at]) this.input.setAttribute("aria-activedescendant", items[at].id);
    else this.input.removeAttribute("aria-activedescendant");
  }

  take(item) {
    if (!item || this.askedFor !== this.input.value) return;
    const after = this.input.value.slice(this.cursor);
    const text = item.dataset.text + (after.startsWith(" ") ? "" : " ");
    this.input.setRangeText(text, this.begin, this.cursor, "end");
    this.typed();
    this.input.focus();
  }

  close() {
    this.asked += 1;
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
  }
}

// The server counts characters, JavaScript halves of some.
const codePoints = (text, at) => [...text.slice(0, at)].length;
const codeUnits = (text, at) => [...text].slice(0, at).join("").length;

function element(name, className = "", text = "") {
  return Object.assign(document.createElement(name), { className, textContent: text });
}

// Last: what is on the page already is set up at once.
mount("filter", (bar) => new Field(bar).listen());

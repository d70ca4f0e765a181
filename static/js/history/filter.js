// The filter field: completes what is typed, and shows where the filter cannot be read.
import { codePoints, codeUnits, errorSpan, nextIndex, textToInsert } from "./filter-text.js";

const WAIT_MS = 120;
const ERROR_AFTER_MS = 900;

export class FilterField {
  /** Listens to a bar whose field may already have the focus. */
  constructor(bar) {
    this.address = bar.dataset.complete;
    this.input = bar.querySelector("input");
    this.list = bar.querySelector("ul");
    this.clear = bar.querySelector("[data-clear]");
    this.errorBox = document.querySelector("#filter-error");
    this.requestCount = 0;
    this.selectedIndex = -1;
  }

  listen() {
    this.input.addEventListener("input", () => this.handleInput());
    this.input.addEventListener("focus", () => this.fetchOffers());
    this.input.addEventListener("click", () => this.fetchOffers());
    this.input.addEventListener("blur", () => setTimeout(() => this.close(), 150));
    this.input.addEventListener("keydown", (event) => this.handleKey(event));
    this.input.form.addEventListener("submit", () => this.close());
    this.list.addEventListener("pointerdown", (event) => event.preventDefault());
    this.list.addEventListener("click", (event) => this.insert(event.target.closest("li")));
    this.clear.addEventListener("click", () => {
      this.input.value = "";
      this.handleInput();
      this.input.form.requestSubmit();
      this.input.focus();
    });
    if (document.activeElement === this.input) this.fetchOffers();
  }

  handleInput() {
    this.clear.hidden = !this.input.value;
    this.input.removeAttribute("aria-invalid");
    this.errorBox.replaceChildren();
    this.selectItem([...this.list.children], -1);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.fetchOffers(), WAIT_MS);
  }

  async fetchOffers() {
    const number = ++this.requestCount;
    const cursor = this.input.selectionStart;
    const query = new URLSearchParams({ filter: this.input.value, at: codePoints(this.input.value, cursor) });
    const response = await fetch(`${this.address}?${query}`);
    if (!response.ok || number !== this.requestCount || document.activeElement !== this.input) return;
    const { begin, offers, error } = await response.json();
    this.completedText = query.get("filter");
    this.begin = codeUnits(this.input.value, begin);
    this.cursor = cursor;
    this.showOffers(offers);
    clearTimeout(this.errorTimer);
    // Only after a pause in typing: a half-written filter is not wrong yet.
    if (error && this.input.value) this.errorTimer = setTimeout(() => this.showError(error), ERROR_AFTER_MS);
  }

  showError({ message, position }) {
    const text = this.input.value;
    const span = errorSpan(text, position);
    if (!span || this.errorBox.childElementCount) return;
    const [from, to] = span;
    const source = element("code", "th-pointed");
    source.append(text.slice(0, from), element("u", "", text.slice(from, to)), text.slice(to));
    const note = element("div", "th-note th-tone-failed");
    const content = element("div");
    content.append(source, element("p", "", `${message} (at character ${position + 1}).`));
    note.append(content);
    this.errorBox.replaceChildren(note);
    this.input.setAttribute("aria-invalid", "true");
  }

  showOffers(offers) {
    this.selectedIndex = -1;
    this.list.replaceChildren(...offers.map((offer, index) => this.offerElement(offer, index)));
    this.list.hidden = offers.length === 0;
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
    this.input.removeAttribute("aria-activedescendant");
  }

  offerElement({ text, kind }, index) {
    const item = element("li");
    item.id = `filter-offer-${index}`;
    item.role = "option";
    item.dataset.text = text;
    item.append(element("span", "th-cut", text), element("small", "th-muted", kind));
    return item;
  }

  handleKey(event) {
    const items = [...this.list.children];
    if (event.key === "Escape") this.close();
    else if (this.list.hidden) event.key === "ArrowDown" && this.fetchOffers();
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      this.selectItem(items, nextIndex(this.selectedIndex, event.key === "ArrowDown" ? 1 : -1, items.length));
    } else if (event.key === "Enter" && items[this.selectedIndex]) {
      event.preventDefault();
      this.insert(items[this.selectedIndex]);
    } else if (
      event.key === "Tab" &&
      !event.shiftKey &&
      this.input.selectionStart > 0 &&
      !this.input.value.endsWith(" ")
    ) {
      event.preventDefault();
      this.acceptFirst();
    }
  }

  /** Inserts the selected or the first offer, after fetching the offers for the last key if necessary. */
  async acceptFirst() {
    clearTimeout(this.timer);
    if (this.completedText !== this.input.value) await this.fetchOffers();
    const items = this.list.children;
    this.insert(items[this.selectedIndex] ?? items[0]);
  }

  selectItem(items, at) {
    this.selectedIndex = at;
    items.forEach((item, index) => item.setAttribute("aria-selected", String(index === at)));
    items[at]?.scrollIntoView({ block: "nearest" });
    if (items[at]) this.input.setAttribute("aria-activedescendant", items[at].id);
    else this.input.removeAttribute("aria-activedescendant");
  }

  insert(item) {
    if (!item || this.completedText !== this.input.value) return;
    const text = textToInsert(item.dataset.text, this.input.value.slice(this.cursor));
    this.input.setRangeText(text, this.begin, this.cursor, "end");
    this.handleInput();
    this.input.focus();
  }

  close() {
    this.requestCount += 1;
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
  }
}

function element(name, className = "", text = "") {
  return Object.assign(document.createElement(name), { className, textContent: text });
}

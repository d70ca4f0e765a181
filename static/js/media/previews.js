// Tables, figures and HTML by step: a cell loads the preview of its file when it is in view, and not each one that the
// slider passes.

const NEAR_PX = "200px";
const SETTLE_MS = 200;
const FAILED = "This file cannot be shown now. Open it, or reload the page.";

/** Loads previews into elements. */
export class Previews {
  #cells = new Map();
  #visibility = new IntersectionObserver((entries) => this.#handleVisibility(entries), { rootMargin: NEAR_PX });

  /** Shows the preview at `address` in an element, soon after the last of several calls. */
  show(element, address) {
    const cell = this.#cells.get(element) ?? { isInView: false };
    if (!this.#cells.has(element)) this.#visibility.observe(element);
    this.#cells.set(element, cell);
    if (cell.address === address) return;
    clearTimeout(cell.timer);
    // The first preview does not wait.
    const wait = cell.address === undefined ? 0 : SETTLE_MS;
    cell.address = address;
    element.setAttribute("aria-busy", "true");
    cell.timer = setTimeout(() => this.#load(element, cell), wait);
  }

  stop() {
    this.#visibility.disconnect();
    for (const cell of this.#cells.values()) {
      clearTimeout(cell.timer);
      cell.request?.abort();
    }
  }

  #handleVisibility(entries) {
    for (const { target, isIntersecting } of entries) {
      const cell = this.#cells.get(target);
      cell.isInView = isIntersecting;
      this.#load(target, cell);
    }
  }

  async #load(element, cell) {
    const { address } = cell;
    if (!cell.isInView || cell.loaded === address) return;
    cell.request?.abort();
    cell.request = new AbortController();
    cell.loaded = address;
    try {
      const answer = await fetch(address, { signal: cell.request.signal });
      // A reader who is no longer signed in is sent to another page.
      if (!answer.ok || answer.redirected) throw new Error(answer.statusText);
      element.innerHTML = await answer.text();
    } catch (error) {
      if (error.name === "AbortError") return;
      const sentence = Object.assign(document.createElement("p"), { className: "ar-none", textContent: FAILED });
      element.replaceChildren(sentence);
    }
    element.removeAttribute("aria-busy");
  }
}

// The command palette: runs, machines, models, pages and actions in one list. Loaded when somebody presses Ctrl-K.

const WAIT_MS = 120;
const COMMANDS = {
  theme: () => document.querySelector("[data-mount~=theme]").click(),
  "sign-out": () => document.querySelector("[data-sign-out]").requestSubmit(),
};
let palette = null;

/** Opens the palette, or closes it if it is open. */
export function openPalette() {
  const address = document.querySelector("[data-palette]")?.dataset.palette;
  if (!address) return; // nobody has signed in
  palette ??= new Palette(address);
  palette.toggle();
}

class Palette {
  constructor(address) {
    this.address = address;
    this.dialog = make("dialog", { className: "th-dialog th-palette" });
    this.dialog.setAttribute("aria-label", "Command palette");
    const placeholder = "Find a run, a machine, a page or an action";
    this.input = make("input", { className: "th-input", type: "text", placeholder });
    this.list = make("ul", { id: "palette-list" });
    this.status = make("p", { className: "th-muted" });
    setAttributes(this.input, {
      role: "combobox",
      "aria-label": "Find or do",
      "aria-autocomplete": "list",
      "aria-expanded": "false",
      "aria-controls": "palette-list",
      autocomplete: "off",
      spellcheck: "false",
    });
    setAttributes(this.list, { role: "listbox", "aria-label": "Results" });
    this.status.setAttribute("role", "status");
    this.dialog.append(this.input, this.list, this.status);
    this.input.addEventListener("input", () => this.searchSoon());
    this.input.addEventListener("keydown", (event) => this.handleKey(event));
    this.dialog.addEventListener("click", (event) => event.target === this.dialog && this.dialog.close());
    document.body.append(this.dialog);
  }

  toggle() {
    if (this.dialog.open) return this.dialog.close();
    if (document.querySelector("dialog[open]")) return; // a question is open, and waits for its answer
    this.input.value = "";
    this.show([], null);
    this.dialog.showModal();
    this.input.focus();
    this.search();
  }

  searchSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.search(), WAIT_MS);
  }

  async search() {
    clearTimeout(this.timer);
    this.request?.abort();
    this.request = new AbortController();
    const { signal } = this.request;
    const text = this.input.value;
    try {
      const query = new URLSearchParams({ q: text });
      const response = await fetch(`${this.address}?${query}`, { signal, headers: { Accept: "application/json" } });
      if (!response.ok) throw new Error(`the hub answered ${response.status}`);
      const { hits } = await response.json();
      this.show(hits, text);
      this.status.textContent = hits.length ? "" : "No results.";
    } catch (error) {
      if (error.name !== "AbortError") this.status.textContent = `The search failed: ${error.message}. Try again.`;
    }
  }

  show(hits, text) {
    this.hits = hits;
    this.shownFor = text;
    this.list.replaceChildren(...hits.map((hit, index) => this.option(hit, index)));
    this.input.setAttribute("aria-expanded", String(hits.length > 0));
    this.choose(0);
  }

  option(hit, index) {
    const option = make("li", { id: `palette-${index}` });
    setAttributes(option, { role: "option", "aria-selected": "false" });
    option.append(
      make("span", { className: "th-cut", textContent: hit.title }),
      make("span", { className: "th-muted th-small th-cut", textContent: hit.detail }),
    );
    option.addEventListener("mousemove", () => this.choose(index));
    option.addEventListener("click", () => this.run(hit));
    return option;
  }

  /** Marks the result that Enter opens. The focus stays in the field. */
  choose(index) {
    this.current = index;
    for (const [place, option] of [...this.list.children].entries()) {
      option.setAttribute("aria-selected", String(place === index));
      if (place === index) option.scrollIntoView({ block: "nearest" });
    }
    if (this.hits.length) this.input.setAttribute("aria-activedescendant", `palette-${index}`);
    else this.input.removeAttribute("aria-activedescendant");
  }

  handleKey(event) {
    const count = this.hits.length;
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps && count) {
      event.preventDefault();
      this.choose((this.current + steps[event.key] + count) % count);
    } else if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      this.enter();
    }
  }

  /** Opens the chosen result. Who types fast may be ahead of the list: then of what the text finds, the first. */
  async enter() {
    if (this.shownFor !== this.input.value) await this.search();
    if (this.shownFor === this.input.value) this.run(this.hits[this.current]);
  }

  run(hit) {
    if (!hit) return;
    this.dialog.close();
    if (hit.command) COMMANDS[hit.command]();
    else location.assign(hit.url);
  }
}

function make(name, properties) {
  return Object.assign(document.createElement(name), properties);
}

function setAttributes(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
}

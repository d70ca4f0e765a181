// Colours from the tokens of the current theme. A subject, such as a GPU, has one colour on the whole page; from the
// ninth subject on, colours repeat with other dashes.

const DASHES = ["solid", "dash", "dot"];
const COUNT = 8;

export class Palette {
  constructor() {
    this.indexes = new Map();
    this.readTheme();
  }

  /** Reads the colours of the current theme. Call it again after the theme has changed. */
  readTheme() {
    const style = getComputedStyle(document.documentElement);
    const token = (name) => style.getPropertyValue(`--th-${name}`).trim();
    this.series = Array.from({ length: COUNT }, (_, index) => token(`chart-${index + 1}`));
    for (const name of ["text", "muted", "line", "surface", "accent", "sans"]) this[name] = token(name);
    this.hostColors = [token("accent"), token("finalizing"), token("preparing")];
    this.tone = token;
  }

  /**
   * Returns {color, dash} of a subject. Colours are assigned in the order of the first calls: use the legend's order.
   */
  styleOf(id) {
    if (!this.indexes.has(id)) this.indexes.set(id, this.indexes.size);
    const index = this.indexes.get(id);
    return { color: this.series[index % COUNT], dash: DASHES[Math.floor(index / COUNT) % DASHES.length] };
  }
}

/** Calls `onChange` when the theme has changed. Returns a function that ends it. */
export function watchTheme(onChange) {
  const observer = new MutationObserver(onChange);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-bs-theme"] });
  return () => observer.disconnect();
}

/** Returns `color` ("#rrggbb") with this opacity (0 to 1). */
export function withOpacity(color, opacity) {
  const [red, green, blue] = [1, 3, 5].map((start) => parseInt(color.slice(start, start + 2), 16));
  return `rgba(${red}, ${green}, ${blue}, ${opacity})`;
}

// Colours, from the tokens of the theme that is on. A GPU has one colour (and beyond eight, a dash) all over the page.

const DASHES = ["solid", "dash", "dot"];
const COUNT = 8;

export class Palette {
  constructor() {
    this.places = new Map();
    this.read();
  }

  /** Colours as they are now; call after the theme has changed. */
  read() {
    const style = getComputedStyle(document.documentElement);
    const token = (name) => style.getPropertyValue(`--th-${name}`).trim();
    this.series = Array.from({ length: COUNT }, (_, index) => token(`chart-${index + 1}`));
    for (const name of ["text", "muted", "line", "surface", "accent", "sans"]) this[name] = token(name);
    this.machine = [token("accent"), token("finalizing"), token("preparing")];
    this.tone = token;
  }

  /** {color, dash} of a subject; who is asked first gets the first colour, so ask in the order of the legend. */
  of(id) {
    if (!this.places.has(id)) this.places.set(id, this.places.size);
    const place = this.places.get(id);
    return { color: this.series[place % COUNT], dash: DASHES[Math.floor(place / COUNT) % DASHES.length] };
  }
}

/** Calls `onChange` when the theme has changed; returns a function that stops it. */
export function watchTheme(onChange) {
  const observer = new MutationObserver(onChange);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-bs-theme"] });
  return () => observer.disconnect();
}

export function faded(color, share) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
  return `rgba(${red}, ${green}, ${blue}, ${share})`;
}

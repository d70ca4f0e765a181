// Plotly's own build for charts with axes (npm: plotly.js-cartesian-dist-min), a third of the whole that the Python package brings: a page
// is ready in a third of the time. Fetched once, when the first chart of a page is made. What needs other kinds of charts takes the whole.

const OF_AXES = "../../vendor/plotly-cartesian-4.1.1.min.js";
const ALL_KINDS = "../../plotly/plotly.min.js";
const RULES = "../../css/plotly.css";
const asked = new Map();
let rules = null;

export function plotly() {
  if (!asked.has(OF_AXES) && globalThis.Plotly) return Promise.resolve(globalThis.Plotly);
  return fetched(OF_AXES);
}

/** With every kind of chart: three times as long to load. */
export function wholePlotly() {
  return fetched(ALL_KINDS);
}

function fetched(path) {
  if (!asked.has(path)) {
    asked.set(path, styleSheet().then(() => new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = new URL(path, import.meta.url).href;
      script.onload = () => resolve(globalThis.Plotly);
      script.onerror = () => {
        asked.delete(path);
        reject(new Error("The charts could not be loaded; reload the page."));
      };
      document.head.append(script);
    })));
  }
  return asked.get(path);
}

/** Plotly writes its rules into the style sheet of this id, and makes one of its own where there is none, which the content security
 * policy of our pages refuses. It has to be loaded before Plotly is. */
function styleSheet() {
  rules ??= new Promise((resolve) => {
    const link = document.createElement("link");
    Object.assign(link, { id: "plotly.js-style-global", rel: "stylesheet", href: new URL(RULES, import.meta.url).href });
    link.onload = resolve;
    link.onerror = resolve; // the charts are drawn all the same
    document.head.append(link);
  });
  return rules;
}

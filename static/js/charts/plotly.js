// Plotly's own build for charts with axes (npm: plotly.js-cartesian-dist-min), a third of the whole that the Python package brings: a page
// is ready in a third of the time. Fetched once, when the first chart of a page is made. What needs other kinds of charts takes the whole.

const OF_AXES = "../../vendor/plotly-cartesian-4.1.1.min.js";
const ALL_KINDS = "../../plotly/plotly.min.js";
const asked = new Map();

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
    asked.set(path, new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = new URL(path, import.meta.url).href;
      script.onload = () => resolve(globalThis.Plotly);
      script.onerror = () => {
        asked.delete(path);
        reject(new Error("The charts could not be loaded; reload the page."));
      };
      document.head.append(script);
    }));
  }
  return asked.get(path);
}

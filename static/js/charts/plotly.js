// Plotly's own build for charts with axes (npm: plotly.js-cartesian-dist-min), a third of the whole that the Python package brings: a page
// is ready in a third of the time. Fetched once, when the first chart of a page is made. What needs other kinds of charts takes the whole.

let asked = null;

export function plotly() {
  asked ??= new Promise((resolve, reject) => {
    if (globalThis.Plotly) {
      resolve(globalThis.Plotly);
      return;
    }
    const script = document.createElement("script");
    script.src = new URL("../../vendor/plotly-cartesian-4.1.1.min.js", import.meta.url).href;
    script.onload = () => resolve(globalThis.Plotly);
    script.onerror = () => {
      asked = null;
      reject(new Error("The charts could not be loaded; reload the page."));
    };
    document.head.append(script);
  });
  return asked;
}

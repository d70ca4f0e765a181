// Plotly weighs some megabytes: fetched once, when the first chart of a page is made.

let asked = null;

export function plotly() {
  asked ??= new Promise((resolve, reject) => {
    if (globalThis.Plotly) {
      resolve(globalThis.Plotly);
      return;
    }
    const script = document.createElement("script");
    script.src = new URL("../../plotly/plotly.min.js", import.meta.url).href;
    script.onload = () => resolve(globalThis.Plotly);
    script.onerror = () => {
      asked = null;
      reject(new Error("The charts could not be loaded; reload the page."));
    };
    document.head.append(script);
  });
  return asked;
}

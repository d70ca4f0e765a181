// Plotly's own build for charts with axes (npm: plotly.js-cartesian-dist-min), a third of the whole: a page is ready in a third of the
// time. Fetched once, when the first chart of a page is made. What needs other kinds of charts takes the whole, in its strict build
// (npm: plotly.js-strict-dist-min), which makes no code from text: the content security policy of our pages refuses that.

const OF_AXES = "../../vendor/plotly-cartesian-4.1.1.min.js";
const ALL_KINDS = "../../vendor/plotly-strict-4.1.1.min.js";
const RULES = "../../css/plotly.css";
// The whole build adds the rules of its maps as an inline style where no element has this id. Maps are not drawn here.
const MAP_RULES = "9f215cf04c5486422605d13261cb87401f4e7763b6296af81e98efbc0130da53";
const asked = new Map();
let rules = null;

export function plotly() {
  if (!asked.has(OF_AXES) && globalThis.Plotly) return Promise.resolve(globalThis.Plotly);
  return fetched(OF_AXES);
}

/** With every kind of chart: three times as long to load. */
export function wholePlotly() {
  if (!document.getElementById(MAP_RULES)) document.head.append(Object.assign(document.createElement("meta"), { id: MAP_RULES }));
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

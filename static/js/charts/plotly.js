// Loads Plotly once, when the first chart of a page is made. Most pages need charts with axes only, for which there is
// a build of a third of the size (npm: plotly.js-cartesian-dist-min). Other kinds of charts need the full strict build
// (npm: plotly.js-strict-dist-min), which makes no code from text: the content security policy of our pages refuses
// that.

const CARTESIAN_BUILD = "../../vendor/plotly-cartesian-4.1.1.min.js";
const FULL_BUILD = "../../vendor/plotly-strict-4.1.1.min.js";
const STYLE_SHEET = "../../css/plotly.css";
// The full build adds an inline style for its maps unless an element has this id. The policy refuses inline styles, and
// there are no maps here.
const MAP_STYLE_ID = "9f215cf04c5486422605d13261cb87401f4e7763b6296af81e98efbc0130da53";
const loads = new Map();
let styleSheetLoad = null;

/** Loads the build for charts with axes, or uses the build that is loaded. */
export function loadPlotly() {
  if (!loads.has(CARTESIAN_BUILD) && globalThis.Plotly) return Promise.resolve(globalThis.Plotly);
  return loadScript(CARTESIAN_BUILD);
}

/** Loads the build with every kind of chart, which takes three times as long. */
export function loadFullPlotly() {
  if (!document.getElementById(MAP_STYLE_ID))
    document.head.append(Object.assign(document.createElement("meta"), { id: MAP_STYLE_ID }));
  return loadScript(FULL_BUILD);
}

function loadScript(path) {
  if (!loads.has(path)) {
    loads.set(
      path,
      loadStyleSheet().then(
        () =>
          new Promise((resolve, reject) => {
            const script = document.createElement("script");
            script.src = new URL(path, import.meta.url).href;
            script.onload = () => resolve(globalThis.Plotly);
            script.onerror = () => {
              loads.delete(path);
              reject(new Error("The charts could not be loaded; reload the page."));
            };
            document.head.append(script);
          }),
      ),
    );
  }
  return loads.get(path);
}

/**
 * Loads the style sheet into which Plotly writes its rules. Without it Plotly would make an inline one, which the
 * content security policy of our pages refuses. It has to be loaded before Plotly is.
 */
function loadStyleSheet() {
  styleSheetLoad ??= new Promise((resolve) => {
    const link = document.createElement("link");
    Object.assign(link, {
      id: "plotly.js-style-global",
      rel: "stylesheet",
      href: new URL(STYLE_SHEET, import.meta.url).href,
    });
    link.onload = resolve;
    link.onerror = resolve; // charts can be drawn without it
    document.head.append(link);
  });
  return styleSheetLoad;
}

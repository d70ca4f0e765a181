// Draws the figure of a sandboxed frame (tracking/artifacts/file_views.py), which can fetch nothing and reach no other
// page.

(() => {
  const figure = JSON.parse(document.getElementById("told").textContent);
  const { width, height, ...layout } = figure.layout; // the size of the frame takes precedence
  const config = {
    responsive: true,
    displaylogo: false,
    modeBarButtonsToRemove: ["toImage"],
    plotlyServerURL: "",
    topojsonURL: "",
  };
  globalThis.Plotly.newPlot("figure", figure.data, { ...layout, autosize: true }, config).catch((error) => {
    document.getElementById("figure").textContent = `This figure cannot be drawn: ${error.message}`;
  });
})();

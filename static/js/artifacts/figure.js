// Draws the one figure of a frame that has no origin (tracking/artifacts/file_views.py): nothing is fetched, nothing is reached.

(() => {
  const told = JSON.parse(document.getElementById("told").textContent);
  const { width, height, ...layout } = told.layout; // the frame's size rules
  const config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["toImage"], plotlyServerURL: "", topojsonURL: "" };
  globalThis.Plotly.newPlot("figure", told.data, { ...layout, autosize: true }, config).catch((error) => {
    document.getElementById("figure").textContent = `This figure cannot be drawn: ${error.message}`;
  });
})();

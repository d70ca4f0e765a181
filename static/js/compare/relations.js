// Params and metrics of the compared runs as axes: parallel coordinates, and a scatter plot of two of them. Plotly's
// full build is only loaded when this section is opened. The address has dim= (axes, may be repeated), sx= and sy=.

import { mount } from "../app.js";
import { Palette, watchTheme } from "../charts/palette.js";
import { loadFullPlotly } from "../charts/plotly.js";
import { axisValue, colorScale, escapeHtml, parallelDimension } from "./dimensions.js";

const HEIGHT = 340;
const SPARE_PX = 18; // the card's own padding
const CONFIG = { displayModeBar: false, responsive: false };

class Relations {
  constructor(element) {
    this.element = element;
    this.part = (name) => element.querySelector(`[data-part=${name}]`);
    const { runs, axes, usual: defaults } = JSON.parse(document.getElementById(element.dataset.config).textContent);
    Object.assign(this, { runs, defaults, axes: new Map(axes.map((axis) => [axis.id, axis])) });
    this.palette = new Palette();
    this.colors = runs.map(({ id }) => this.palette.styleOf(id));
    this.#readAddress();
    this.#addControls();
    const section = element.closest("details");
    const load = () => this.#load();
    section.addEventListener("opened", load);
    this.resized = new ResizeObserver(() => this.draw());
    this.stopTheme = watchTheme(() => {
      this.palette.readTheme();
      this.colors = runs.map(({ id }) => this.palette.styleOf(id));
      this.draw();
    });
    this.close = () => {
      section.removeEventListener("opened", load);
      this.resized.disconnect();
      this.stopTheme();
    };
  }

  async #load() {
    if (this.plotly) return;
    this.part("note").textContent = "Loading …";
    try {
      this.plotly = await loadFullPlotly();
    } catch (error) {
      this.part("note").textContent = error.message;
      return;
    }
    this.resized.observe(this.element);
    this.draw();
  }

  draw() {
    if (!this.plotly || !this.element.clientWidth) return;
    const isPossible = this.runs.length > 1 && this.axes.size > 1;
    for (const name of ["parallel", "scatter"]) this.part(name).hidden = !isPossible;
    this.part("note").textContent = isPossible ? "" : "This plot needs at least two runs with params or metrics.";
    if (!isPossible) return;
    this.#parallel();
    this.#scatter();
  }

  #readAddress() {
    const params = new URLSearchParams(location.search);
    const existing = (names) => names.filter((name) => this.axes.has(name));
    const dims = existing(params.getAll("dim"));
    this.dims = dims.length ? dims : existing(this.defaults);
    const ids = [...this.axes.keys()];
    const metric = ids.find((id) => this.defaults.includes(id) && id.startsWith("metrics.")) ?? ids.at(-1);
    this.sx = existing([params.get("sx")])[0] ?? this.defaults.find((id) => id !== metric) ?? ids[0];
    this.sy = existing([params.get("sy")])[0] ?? metric;
  }

  #addControls() {
    for (const name of ["sx", "sy"]) {
      const select = this.part(name);
      for (const { id, label, kind } of this.axes.values())
        select.add(new Option(kind === "metric" ? label : `${label} (param)`, id, false, id === this[name]));
      select.addEventListener("change", () => {
        this[name] = select.value;
        this.#writeAddress();
        this.draw();
      });
    }
    for (const { id, label } of this.axes.values()) {
      const box = Object.assign(document.createElement("input"), {
        type: "checkbox",
        value: id,
        checked: this.dims.includes(id),
      });
      const line = document.createElement("label");
      line.append(box, label);
      box.addEventListener("change", () => {
        this.dims = box.checked ? [...this.dims, id] : this.dims.filter((other) => other !== id);
        this.#writeAddress();
        this.draw();
      });
      this.part("axes").append(line);
    }
    this.part("count").textContent = this.axes.size;
  }

  #writeAddress() {
    const url = new URL(location.href);
    url.searchParams.delete("dim");
    if (String(this.dims) !== String(this.defaults)) for (const dim of this.dims) url.searchParams.append("dim", dim);
    url.searchParams.set("sx", this.sx);
    url.searchParams.set("sy", this.sy);
    history.replaceState(history.state, "", url.pathname + url.search.replaceAll("%2C", ",") + url.hash);
  }

  #parallel() {
    const dims = this.dims.map((id) => this.axes.get(id));
    const complete = this.runs
      .map((_, index) => index)
      .filter((index) => dims.every(({ values }) => values[index] !== null));
    const missing = this.runs.length - complete.length;
    const sentence = `${missing} of the runs ${missing === 1 ? "has" : "have"} no value on one of these axes.`;
    this.part("note").textContent = missing ? sentence : "";
    const lastIndex = Math.max(1, this.runs.length - 1);
    const { text, muted, sans } = this.palette;
    this.plotly.react(
      this.part("parallel"),
      [
        {
          type: "parcoords",
          dimensions: dims.map((axis) => parallelDimension(axis, complete)),
          line: {
            color: complete,
            cmin: 0,
            cmax: lastIndex,
            colorscale: colorScale(this.colors.map(({ color }) => color)),
          },
          labelfont: { color: text, size: 12 },
          tickfont: { color: muted, size: 11 },
          rangefont: { color: "rgba(0,0,0,0)", size: 1 },
          unselected: { line: { color: muted, opacity: 0.12 } },
        },
      ],
      this.#layout({ l: 70, r: 70, t: 50, b: 24 }, sans),
      CONFIG,
    );
  }

  #scatter() {
    const [x, y] = [this.axes.get(this.sx), this.axes.get(this.sy)];
    const { line, muted, sans } = this.palette;
    const axis = ({ label, values }) => ({
      title: { text: escapeHtml(label), font: { size: 12 } },
      gridcolor: line,
      zeroline: false,
      linecolor: line,
      color: muted,
      type: values.some((value) => typeof value === "string") ? "category" : "linear",
      automargin: true,
    });
    const traces = this.runs.map(({ number, name }, index) => ({
      type: "scatter",
      mode: "markers",
      x: [axisValue(x.values[index])],
      y: [axisValue(y.values[index])],
      name: `${number} · ${name}`,
      marker: {
        color: this.colors[index].color,
        size: 11,
        symbol: this.colors[index].dash === "solid" ? "circle" : "circle-open",
      },
      hovertemplate: [
        escapeHtml(`${number} · ${name}`),
        `${escapeHtml(x.label)} %{x}`,
        `${escapeHtml(y.label)} %{y}<extra></extra>`,
      ].join("<br>"),
    }));
    const layout = {
      ...this.#layout({ l: 60, r: 16, t: 12, b: 44 }, sans),
      xaxis: axis(x),
      yaxis: axis(y),
      hovermode: "closest",
      showlegend: false,
      dragmode: false,
    };
    this.plotly.react(this.part("scatter"), traces, layout, CONFIG);
  }

  #layout(margin, family) {
    return {
      width: this.element.clientWidth - SPARE_PX,
      height: HEIGHT,
      margin,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family, size: 11, color: this.palette.muted },
    };
  }
}

mount("relations", (element) => {
  const relations = new Relations(element);
  return () => relations.close();
});

// Params and metrics of the compared runs as axes: parallel coordinates, and a scatter of two of them. Plotly's whole build is
// fetched only when somebody opens this section. dims= (axes), sx= and sy= are in the address.

import { mount } from "../app.js";
import { Palette, watchTheme } from "../charts/palette.js";
import { wholePlotly } from "../charts/plotly.js";

const HEIGHT = 340;
const SPARE_PX = 18; // the card's own padding
const MOST_TEXT = 24;
const CONFIG = { displayModeBar: false, responsive: false };

class Relations {
  constructor(element) {
    this.element = element;
    this.part = (name) => element.querySelector(`[data-part=${name}]`);
    const { runs, axes, usual } = JSON.parse(document.getElementById(element.dataset.config).textContent);
    Object.assign(this, { runs, usual, axes: new Map(axes.map((axis) => [axis.id, axis])) });
    this.palette = new Palette();
    this.colors = runs.map(({ id }) => this.palette.of(id));
    this.#read();
    this.#controls();
    const section = element.closest("details");
    const begin = () => this.#begin();
    section.addEventListener("opened", begin);
    this.resized = new ResizeObserver(() => this.draw());
    this.stopTheme = watchTheme(() => {
      this.palette.read();
      this.colors = runs.map(({ id }) => this.palette.of(id));
      this.draw();
    });
    this.close = () => {
      section.removeEventListener("opened", begin);
      this.resized.disconnect();
      this.stopTheme();
    };
  }

  async #begin() {
    if (this.plotly) return;
    this.part("note").textContent = "Loading …";
    try {
      this.plotly = await wholePlotly();
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
    this.part("note").textContent = isPossible ? "" : "This needs two runs with params or metrics.";
    if (!isPossible) return;
    this.#parallel();
    this.#scatter();
  }

  #read() {
    const asked = new URLSearchParams(location.search);
    const known = (names) => names.filter((name) => this.axes.has(name));
    const dims = known(asked.getAll("dim"));
    this.dims = dims.length ? dims : known(this.usual);
    const ids = [...this.axes.keys()];
    const metric = ids.find((id) => this.usual.includes(id) && id.startsWith("metrics.")) ?? ids.at(-1);
    this.sx = known([asked.get("sx")])[0] ?? this.usual.find((id) => id !== metric) ?? ids[0];
    this.sy = known([asked.get("sy")])[0] ?? metric;
  }

  #controls() {
    for (const name of ["sx", "sy"]) {
      const select = this.part(name);
      for (const { id, label, kind } of this.axes.values()) select.add(new Option(kind === "metric" ? label : `${label} (param)`, id, false, id === this[name]));
      select.addEventListener("change", () => {
        this[name] = select.value;
        this.#write();
        this.draw();
      });
    }
    for (const { id, label } of this.axes.values()) {
      const box = Object.assign(document.createElement("input"), { type: "checkbox", value: id, checked: this.dims.includes(id) });
      const line = document.createElement("label");
      line.append(box, label);
      box.addEventListener("change", () => {
        this.dims = box.checked ? [...this.dims, id] : this.dims.filter((other) => other !== id);
        this.#write();
        this.draw();
      });
      this.part("axes").append(line);
    }
    this.part("count").textContent = this.axes.size;
  }

  #write() {
    const url = new URL(location.href);
    url.searchParams.delete("dim");
    if (String(this.dims) !== String(this.usual)) for (const dim of this.dims) url.searchParams.append("dim", dim);
    url.searchParams.set("sx", this.sx);
    url.searchParams.set("sy", this.sy);
    history.replaceState(history.state, "", url.pathname + url.search.replaceAll("%2C", ",") + url.hash);
  }

  #parallel() {
    const dims = this.dims.map((id) => this.axes.get(id));
    const whole = this.runs.map((_, place) => place).filter((place) => dims.every(({ values }) => values[place] !== null));
    const left = this.runs.length - whole.length;
    this.part("note").textContent = left ? `${left} of the runs ${left === 1 ? "has" : "have"} no value on one of these axes, and cannot be drawn there.` : "";
    const most = Math.max(1, this.runs.length - 1);
    const { text, muted, sans } = this.palette;
    this.plotly.react(this.part("parallel"), [{
      type: "parcoords", dimensions: dims.map((axis) => dimension(axis, whole)),
      line: { color: whole, cmin: 0, cmax: most, colorscale: scaleOf(this.colors.map(({ color }) => color)) },
      labelfont: { color: text, size: 12 }, tickfont: { color: muted, size: 11 }, rangefont: { color: "rgba(0,0,0,0)", size: 1 },
      unselected: { line: { color: muted, opacity: 0.12 } },
    }], this.#layout({ l: 70, r: 70, t: 50, b: 24 }, sans), CONFIG);
  }

  #scatter() {
    const [x, y] = [this.axes.get(this.sx), this.axes.get(this.sy)];
    const { line, muted, sans } = this.palette;
    const axis = ({ label, values }) => ({
      title: { text: escaped(label), font: { size: 12 } }, gridcolor: line, zeroline: false, linecolor: line, color: muted,
      type: values.some((value) => typeof value === "string") ? "category" : "linear", automargin: true,
    });
    const traces = this.runs.map(({ number, name }, place) => ({
      type: "scatter", mode: "markers", x: [shownValue(x.values[place])], y: [shownValue(y.values[place])], name: `${number} · ${name}`,
      marker: { color: this.colors[place].color, size: 11, symbol: this.colors[place].dash === "solid" ? "circle" : "circle-open" },
      hovertemplate: `${escaped(`${number} · ${name}`)}<br>${escaped(x.label)} %{x}<br>${escaped(y.label)} %{y}<extra></extra>`,
    }));
    const layout = { ...this.#layout({ l: 60, r: 16, t: 12, b: 44 }, sans), xaxis: axis(x), yaxis: axis(y), hovermode: "closest", showlegend: false, dragmode: false };
    this.plotly.react(this.part("scatter"), traces, layout, CONFIG);
  }

  #layout(margin, family) {
    return {
      width: this.element.clientWidth - SPARE_PX, height: HEIGHT, margin, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family, size: 11, color: this.palette.muted },
    };
  }
}

/** Texts become places with their words beside them. */
function dimension({ label, values }, whole) {
  const own = whole.map((place) => values[place]);
  if (own.every((value) => typeof value === "number")) {
    const [low, high] = [Math.min(...own), Math.max(...own)];
    return { label: cut(label), values: own, range: low < high ? [low, high] : [low - 1, high + 1] };
  }
  const words = [...new Set(own.map(String))].sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
  return {
    label: cut(label), values: own.map((value) => words.indexOf(String(value))), tickvals: words.map((_, place) => place),
    ticktext: words.map(shortened), range: [-0.2, Math.max(words.length - 0.8, 0.2)],
  };
}

/** Steps, not a gradient: each run keeps its colour. */
function scaleOf(colors) {
  const most = Math.max(1, colors.length - 1);
  return colors.length === 1 ? [[0, colors[0]], [1, colors[0]]] : colors.map((color, place) => [place / most, color]);
}

function cut(text) {
  return escaped(shortened(text));
}

/** As words along an axis of parallel coordinates are read: as they are. */
function shortened(text) {
  return text.length > MOST_TEXT ? `${text.slice(0, MOST_TEXT - 1)}…` : text;
}

/** A text becomes the name of a place on its axis. */
function shownValue(value) {
  return typeof value === "string" ? escaped(value) : value;
}

/** Plotly reads a little HTML in its texts. */
function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

mount("relations", (element) => {
  const relations = new Relations(element);
  return () => relations.close();
});

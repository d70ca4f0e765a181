// Draws lines, bands and axes as SVG. It takes the same traces and layout as Plotly.react, of which it knows only what
// charts of telemetry need: Plotly takes 0.3 s to be parsed before it draws the first of them.

const NAMESPACE = "http://www.w3.org/2000/svg";
const DASHES = { dash: "6 4", dot: "2 2.5" };
const OVERHANG_PX = 2; // half a line at the edges of the plot, such as one at 100 %
const LABEL_GAP_PX = 5;
const BASELINE_PX = 14;

/** Draws a chart into `element`, in place of an earlier one. Like Plotly, it keeps `data` and `layout` there. */
export function react(element, traces, layout) {
  const { width, height, margin, font } = layout;
  const plot = { x: margin.l, y: margin.t, width: width - margin.l - margin.r, height: height - margin.t - margin.b };
  const scale = {
    x: scaleOf(layout.xaxis.range, plot.x, plot.x + plot.width),
    y: scaleOf(layout.yaxis.range, plot.y + plot.height, plot.y),
  };
  const ticks = yTicks(layout.yaxis.range, layout.yaxis.nticks);
  const svg = node("svg", { class: "main-svg", width, height, "font-family": font.family, "font-size": font.size });
  svg.append(
    bands(layout.shapes, scale.x, plot),
    gridLines(layout.xaxis.tickvals.map(scale.x), ticks.map(scale.y), plot, layout.xaxis),
    lines(traces, scale, plot),
    labels(ticks, scale, plot, layout),
  );
  element.replaceChildren(svg);
  Object.assign(element, { data: traces, layout });
}

export function purge(element) {
  element.replaceChildren();
}

/** Returns a function from values to pixels, to a tenth. */
export function scaleOf([low, high], from, to) {
  const factor = (to - from) / (high - low || 1);
  return (value) => Math.round((from + (value - low) * factor) * 10) / 10;
}

/** Returns round values within the range, at most one more than `count`. */
export function yTicks([low, high], count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.9999);
  const ticks = [];
  for (let index = Math.ceil(low / step - 1e-9); index * step <= high + step * 1e-9; index += 1) {
    ticks.push(Number((index * step).toPrecision(12)));
  }
  return ticks;
}

/** Returns the path of a line, which ends at each gap. */
export function linePath({ x, y }, scale) {
  let path = "";
  let isDrawing = false;
  for (let index = 0; index < x.length; index += 1) {
    if (y[index] === null) {
      isDrawing = false;
      continue;
    }
    path += `${isDrawing ? "L" : "M"}${scale.x(x[index])} ${scale.y(y[index])}`;
    isDrawing = true;
  }
  return path;
}

function bands(shapes, toX, plot) {
  const group = node("svg", plot);
  for (const { x0, x1, fillcolor } of shapes) {
    const [left, right] = [x0, x1].map((at) => Math.min(Math.max(toX(at), plot.x), plot.x + plot.width));
    group.append(node("rect", { x: left - plot.x, width: right - left, height: plot.height, fill: fillcolor }));
  }
  return group;
}

function gridLines(columns, rows, { x, y, width, height }, axis) {
  const vertical = columns.map((at) => `M${at} ${y}v${height}`);
  const horizontal = [...rows, y + height].map((at) => `M${x} ${at}h${width}`);
  const d = [...vertical, ...horizontal].join("");
  return node("path", { d, stroke: axis.gridcolor, "shape-rendering": "crispEdges" });
}

function lines(traces, scale, plot) {
  // A nested SVG clips what lies outside.
  const [top, height] = [plot.y - OVERHANG_PX, plot.height + 2 * OVERHANG_PX];
  const viewBox = `${plot.x} ${top} ${plot.width} ${height}`;
  const layer = node("svg", { class: "scatterlayer", x: plot.x, y: top, width: plot.width, height, viewBox });
  for (const trace of traces) {
    const group = node("g", { class: "trace" });
    const { fill, fillcolor, line, marker, mode } = trace;
    const d = linePath(trace, scale);
    if (fill) group.append(node("path", { d, fill: fillcolor }));
    else {
      const dashes = DASHES[line.dash];
      const stroke = { fill: "none", stroke: line.color, "stroke-width": line.width, "stroke-linejoin": "round" };
      group.append(node("path", { d, ...stroke, ...(dashes && { "stroke-dasharray": dashes }) }));
    }
    if (mode.includes("markers")) group.append(points(trace, scale, marker));
    layer.append(group);
  }
  return layer;
}

function points({ x, y }, scale, { color, size }) {
  const d = x.map((at, index) => (y[index] === null ? "" : `M${scale.x(at)} ${scale.y(y[index])}h0`)).join("");
  return node("path", { d, stroke: color, "stroke-width": size, "stroke-linecap": "round" });
}

function labels(ticks, scale, plot, { xaxis, yaxis }) {
  const group = node("g", { fill: xaxis.color });
  xaxis.tickvals.forEach((at, index) => {
    const place = { x: scale.x(at), y: plot.y + plot.height + BASELINE_PX, "text-anchor": "middle" };
    group.append(text(xaxis.ticktext[index], place));
  });
  ticks.forEach((value, index) => {
    const suffix = index === ticks.length - 1 ? yaxis.ticksuffix : "";
    const place = { class: "ytick", x: plot.x - LABEL_GAP_PX, y: scale.y(value), dy: "0.35em", "text-anchor": "end" };
    group.append(text(`${value}`.replace("-", "−") + suffix, place));
  });
  return group;
}

export function text(content, place) {
  const element = node("text", place);
  element.textContent = content;
  return element;
}

export function node(name, attributes) {
  const element = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

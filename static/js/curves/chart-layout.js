// Plotly's layout of a chart of curves: axes with titles, and marks where something happened.

import { withOpacity } from "../charts/palette.js";
import { MARGIN } from "../charts/panel.js";
import { labelledEvents } from "./annotations.js";

const BOTTOM = 36; // the ticks and the title of the x axis; static/css/curves.css has the same number
const LETTER_PX = 6.2;
const FONT_PX = 11;
const LONG_NUMBER = 10_000;

/**
 * Returns the layout. `view`: that of CurveChart.draw. `range`: of the y axis. `axis`: of axes.js. `titles`: {x, y}.
 * `size`: {width, height} in pixels. `revision`: another number for each drawing.
 */
export function chartLayout({ view, range, axis, titles, size, revision }) {
  const { palette, from, to, isLog, isLogY } = view;
  const base = {
    fixedrange: true,
    zeroline: false,
    gridcolor: palette.line,
    linecolor: palette.line,
    color: palette.muted,
  };
  const plotWidth = size.width - MARGIN.l - MARGIN.r;
  const plotHeight = size.height - MARGIN.t - BOTTOM;
  return {
    ...size,
    margin: { ...MARGIN, b: BOTTOM, pad: 0, autoexpand: false },
    showlegend: false,
    hovermode: false,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: palette.sans, size: FONT_PX, color: palette.muted },
    xaxis: {
      ...base,
      type: isLog ? "log" : "linear",
      range: isLog ? [Math.log10(from), Math.log10(to)] : [from, to],
      ticks: "",
      showline: true,
      tickangle: 0,
      ...axis.ticks(view, plotWidth),
    },
    yaxis: { ...base, type: isLogY ? "log" : "linear", range, ...yTicks(range, isLogY, plotHeight) },
    yaxis2: { overlaying: "y", range: [0, 1], visible: false, fixedrange: true },
    shapes: view.events.map((event) => eventShape(event, palette)),
    annotations: [
      axisTitle(titles.x, plotWidth, { x: 0.5, y: 0, yshift: -18, yanchor: "top" }),
      axisTitle(titles.y, plotHeight, { x: 0, y: 0.5, xshift: -47, xanchor: "center", textangle: -90 }),
      ...labelledEvents(view.events, view).map((event) => eventLabel(event, view)),
    ],
    datarevision: revision,
  };
}

function yTicks([low, high], isLogY, height) {
  const maxTicks = height > 180 ? 8 : 5;
  // Long numbers would reach the title of the axis: 20k and 3M instead.
  if (!isLogY) return { nticks: maxTicks, tickformat: Math.max(-low, high) < LONG_NUMBER ? "~g" : "~s" };
  // Plotly would choose more ticks than there is room for.
  if (high - low < 0.5) return { nticks: maxTicks, tickformat: "~g" };
  return {
    dtick: high - low < 1.5 ? "D2" : Math.max(1, Math.ceil((high - low) / maxTicks)),
    tickformat: "~g",
  };
}

/** Plotly would move a title of its own with the width of the tick labels, and cut neither. */
function axisTitle(text, room, place) {
  const most = Math.floor(room / LETTER_PX);
  const shown = text.length > most ? `${text.slice(0, most - 1)}…` : text;
  return { text: escapeText(shown), xref: "paper", yref: "paper", showarrow: false, borderpad: 0, ...place };
}

function eventShape({ from, to, tone }, palette) {
  const color = palette.tone(tone);
  const isMoment = to === null;
  return {
    type: isMoment ? "line" : "rect",
    layer: isMoment ? "above" : "below", // the grid would cover a line
    xref: "x",
    yref: "paper",
    x0: from,
    x1: to ?? from,
    y0: 0,
    y1: 1,
    line: { width: 1, color: isMoment ? color : withOpacity(color, 0.5), dash: "dot" },
    fillcolor: withOpacity(color, 0.1),
  };
}

function eventLabel({ from, label, tone }, { isLog, palette }) {
  return {
    text: escapeText(label),
    x: isLog ? Math.log10(from) : from,
    y: 1,
    xref: "x",
    yref: "paper",
    xanchor: "left",
    yanchor: "top",
    showarrow: false,
    borderpad: 1,
    bgcolor: withOpacity(palette.surface, 0.8),
    font: { size: 10, color: palette.tone(tone) },
  };
}

/** Plotly reads a few HTML tags and entities in texts. */
function escapeText(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

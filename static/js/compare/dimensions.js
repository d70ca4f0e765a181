// Values of runs as Plotly's parallel coordinates and scatter plots need them.

const MAX_TEXT = 24;

/**
 * Returns a dimension of Plotly's parallel coordinates. `complete`: the indexes of the runs to draw. Texts become
 * positions with tick labels.
 */
export function parallelDimension({ label, values }, complete) {
  const present = complete.map((index) => values[index]);
  if (!present.length) return { label: shortenEscaped(label), values: [], range: [0, 1] };
  if (present.every((value) => typeof value === "number")) {
    const [low, high] = [Math.min(...present), Math.max(...present)];
    return { label: shortenEscaped(label), values: present, range: low < high ? [low, high] : [low - 1, high + 1] };
  }
  const words = [...new Set(present.map(String))].sort((left, right) =>
    left.localeCompare(right, "en", { numeric: true }),
  );
  return {
    label: shortenEscaped(label),
    values: present.map((value) => words.indexOf(String(value))),
    tickvals: words.map((_, index) => index),
    ticktext: words.map(shorten),
    range: [-0.2, Math.max(words.length - 0.8, 0.2)],
  };
}

/** Returns a colour scale with a step for each run, so that each keeps its colour. */
export function colorScale(colors) {
  const lastIndex = Math.max(1, colors.length - 1);
  return colors.length === 1
    ? [
        [0, colors[0]],
        [1, colors[0]],
      ]
    : colors.map((color, index) => [index / lastIndex, color]);
}

function shortenEscaped(text) {
  return escapeHtml(shorten(text));
}

/** Shortens a text. Plotly reads no HTML in the tick labels of parallel coordinates, so it is not escaped. */
function shorten(text) {
  const characters = [...text];
  return characters.length > MAX_TEXT ? `${characters.slice(0, MAX_TEXT - 1).join("")}…` : text;
}

/** Returns a value for a scatter plot. A text becomes a category, in whose name Plotly reads HTML. */
export function axisValue(value) {
  return typeof value === "string" ? escapeHtml(value) : value;
}

/** Escapes a text for Plotly, which reads a little HTML in most texts. */
export function escapeHtml(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

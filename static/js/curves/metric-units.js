// The titles of y axes: the unit of a metric if its name ends with one, otherwise its name.

const RATE = /(?:^|[_/])(samples|images|tokens|steps|examples|batches|frames|requests)_(?:per_)?(?:s|sec|second)$/i;
const UNITS = [
  [/(?:^|[_/])(?:percent|percentage|pct)$/i, "%"],
  [/(?:^|[_/])(?:ms|milliseconds?)$/i, "ms"],
  [/(?:^|[_/])(?:s|secs?|seconds?)$/i, "s"],
  [/(?:^|[_/])bytes$/i, "B"],
  [/(?:^|[_/])(?:mb|megabytes)$/i, "MB"],
  [/(?:^|[_/])(?:gb|gigabytes)$/i, "GB"],
  [/(?:^|[_/])(?:w|watts)$/i, "W"],
  [/(?:^|[_/])(?:celsius|degrees_c)$/i, "°C"],
];

/** Returns the unit that the metric's name ends with, or "". */
export function unitOf(key) {
  const rate = key.match(RATE);
  if (rate) return `${rate[1].toLowerCase()}/s`;
  return UNITS.find(([pattern]) => pattern.test(key))?.[1] ?? "";
}

/** Returns the title of the y axis of a chart with these metrics. */
export function titleOf(keys) {
  const common = (texts) => (new Set(texts).size === 1 ? texts[0] : "");
  return common(keys.map(unitOf)) || common(keys.map((key) => key.split("/").at(-1))) || "Value";
}

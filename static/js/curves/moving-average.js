// The exponential moving average with bias correction, as TensorBoard draws it. It uses only the points on this page,
// so it is shown at once, until the hub's average of all points has arrived (tracking/curves/).

/** Returns the average at each value. Values that are not numbers stay as they are. */
export function movingAverage(values, weight) {
  if (!weight) return values;
  let [sum, count] = [0, 0];
  return values.map((value) => {
    if (value === null || !Number.isFinite(value)) return value;
    sum = sum * weight + (1 - weight) * value;
    count += 1;
    return sum / (1 - weight ** count);
  });
}

// The moving average as TensorBoard draws it, of the points that are here: what is seen at once while the hub's own, which
// takes every point, is on its way (tracking/curves/smoothing.py).

export function smoothed(values, weight) {
  if (!weight) return values;
  let [last, taken] = [0, 0];
  return values.map((value) => {
    if (value === null || !Number.isFinite(value)) return value;
    last = last * weight + (1 - weight) * value;
    taken += 1;
    return last / (1 - weight ** taken);
  });
}

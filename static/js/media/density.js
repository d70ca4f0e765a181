// The numbers of a chart of histograms: how the values of each step are spread over rows that all steps share.

export const ROWS = 40;

/** Returns `{ low, high, shares }`: for each step the share of its values in each row, from `low` upwards. */
export function densityOf(steps) {
  const low = Math.min(...steps.map((step) => step.low));
  const high = Math.max(...steps.map((step) => step.high));
  return { low, high, shares: steps.map((step) => sharesOf(step, low, (high - low) / ROWS)) };
}

function sharesOf({ low, high, counts }, start, height) {
  const shares = new Array(ROWS).fill(0);
  const total = counts.reduce((sum, count) => sum + count, 0);
  const width = (high - low) / counts.length;
  counts.forEach((count, index) => {
    const from = low + index * width;
    const first = rowAt(from, start, height);
    const last = rowAt(from + width, start, height);
    for (let row = first; row <= last; row += 1) {
      const overlap = Math.min(from + width, start + (row + 1) * height) - Math.max(from, start + row * height);
      const part = first === last ? 1 : Math.max(0, overlap) / width;
      shares[row] += (part * count) / total;
    }
  });
  return shares;
}

function rowAt(value, start, height) {
  return height ? Math.min(ROWS - 1, Math.max(0, Math.floor((value - start) / height))) : 0;
}

/** Returns the value below which this share of a step's values lie. */
export function quantile({ low, high, counts }, share) {
  let rest = share * counts.reduce((sum, count) => sum + count, 0);
  const width = (high - low) / counts.length;
  for (const [index, count] of counts.entries()) {
    if (count && rest <= count) return low + (index + rest / count) * width;
    rest -= count;
  }
  return high;
}

/** Returns a number as text with three digits. */
export function short(value) {
  return `${Number(value.toPrecision(3))}`.replace("-", "−");
}

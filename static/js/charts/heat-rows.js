// The rows of the heat map of a cluster's GPUs.

const MAX_ROWS = 128; // with more, a row would be thinner than a few pixels

/**
 * Returns [{label, node, values}]: a row per GPU, or the mean of a node's GPUs if that would be more than `maxRows`
 * rows.
 */
export function heatRows(answer, maxRows = MAX_ROWS) {
  const rows = answer.rows.map(({ node, index, mean }) => ({ label: `${node} · ${index}`, node, values: mean }));
  if (rows.length <= maxRows) return rows;
  const nodes = [...new Set(rows.map(({ node }) => node))];
  return nodes.map((node) => {
    const nodeRows = rows.filter((row) => row.node === node);
    return {
      label: `${node} (${nodeRows.length})`,
      node,
      values: answer.times.map((_, at) => meanOf(nodeRows.map(({ values }) => values[at]))),
    };
  });
}

/** Returns the largest value of all rows, but not 0, by which it could not be divided. */
export function largestValue(rows) {
  let largest = 1e-9;
  for (const { values } of rows) for (const value of values) if (value !== null && value > largest) largest = value;
  return largest;
}

function meanOf(values) {
  const numbers = values.filter((value) => value !== null);
  return numbers.length ? numbers.reduce((sum, value) => sum + value, 0) / numbers.length : null;
}

// Which file of a series a step shows, and where its bytes are.

/** Returns the last of the files, which are ordered by step, that is not after `step`. */
export function lastUpTo(files, step) {
  return files.findLast(([at]) => at <= step);
}

/** Returns the address of a file below `root`. Names that MLflow gives contain "+" or "%". */
export function addressOf(root, { query }, path) {
  return root + path.split("/").map(encodeURIComponent).join("/") + query;
}

// The texts of what a row gets when it is used.

/** Returns the query of the table with one more condition, from its first page on. `prefix`: the filter before it. */
export function narrowedQuery(search, prefix, condition) {
  const query = new URLSearchParams(search);
  query.delete("page");
  query.set("filter", prefix + condition);
  return `?${query}`;
}

/** Returns the actions of run 0, which the page has once, as those of another run. */
export function actionsOfRun(markup, number) {
  return markup.replaceAll(/\b(runs\/|run )0\b/g, `$1${number}`);
}

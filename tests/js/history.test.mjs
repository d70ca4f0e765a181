import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { actionsOfRun, narrowedQuery } from "../../static/js/history/row-text.js";

describe("the link that narrows the table to a cell", () => {
  const query = (...texts) => new URLSearchParams(narrowedQuery(...texts));

  it("adds a condition to the filter and keeps the rest of the table", () => {
    const narrowed = query("?filter=starred&column=a&column=b&page=3", "starred AND ", "params.opt = 'a  b'");
    assert.equal(narrowed.get("filter"), "starred AND params.opt = 'a  b'");
    assert.deepEqual(narrowed.getAll("column"), ["a", "b"]);
    assert.equal(narrowed.get("page"), null);
  });

  it("is the only condition where there is no filter", () => {
    assert.equal(query("", "", "metrics.acc >= 0.5").get("filter"), "metrics.acc >= 0.5");
  });
});

describe("the actions of a row", () => {
  it("name its run in addresses and sentences, and nothing else", () => {
    const markup = '<form action="/runs/0/cancel/" data-confirm="Cancel run 0?" data-kept="10 of run 01, 0 left">';
    assert.equal(
      actionsOfRun(markup, "12"),
      '<form action="/runs/12/cancel/" data-confirm="Cancel run 12?" data-kept="10 of run 01, 0 left">',
    );
  });
});

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { ROWS, densityOf, quantile, short } from "../../static/js/media/density.js";
import { addressOf, lastUpTo } from "../../static/js/media/steps.js";

const FILES = [[0], [10], [20]];

describe("the file that a step shows", () => {
  it("is that of the step", () => assert.deepEqual(lastUpTo(FILES, 10), [10]));
  it("is the last one before a step without a file", () => assert.deepEqual(lastUpTo(FILES, 19), [10]));
  it("is none before the first step", () => assert.equal(lastUpTo(FILES, -1), undefined));
});

describe("the address of a file", () => {
  it("encodes each part of its path", () =>
    assert.equal(
      addressOf("/api/root/", { query: "?attempt=1" }, "images/a~b+step+1.png"),
      "/api/root/images/a~b%2Bstep%2B1.png?attempt=1",
    ));
});

describe("the chart of histograms", () => {
  const even = { step: 0, low: 0, high: 4, counts: [1, 1, 1, 1] };
  const single = { step: 1, low: 8, high: 8, counts: [3] };
  it("spreads each step over the rows of all", () => {
    const { low, high, shares } = densityOf([even, single]);
    assert.deepEqual([low, high], [0, 8]);
    for (const ofStep of shares) assert.ok(Math.abs(ofStep.reduce((sum, share) => sum + share, 0) - 1) < 1e-9);
    assert.equal(shares[1][ROWS - 1], 1);
    assert.ok(shares[0].slice(ROWS / 2 + 1).every((share) => share < 1e-9));
  });
  it("knows below which value a share lies", () => {
    assert.equal(quantile(even, 0.25), 1);
    assert.equal(quantile(even, 0.75), 3);
    assert.equal(quantile(single, 0.5), 8);
  });
  it("writes numbers briefly", () => assert.equal(short(-0.123456), "−0.123"));
});

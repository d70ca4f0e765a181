import assert from "node:assert/strict";
import { describe, it } from "node:test";

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
      addressOf({ bytes: "/api/root/", query: "?attempt=1" }, "images/a~b+step+1.png"),
      "/api/root/images/a~b%2Bstep%2B1.png?attempt=1",
    ));
});

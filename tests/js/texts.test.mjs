import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { formatBytes, formatDuration, formatRelativeTime } from "../../static/js/formats.js";
import { codePoints, codeUnits, errorSpan, nextIndex, textToInsert } from "../../static/js/history/filter-text.js";

describe("formats", () => {
  it("of times in the past", () => {
    const times = [0, 4.9, 5, 59, 60, 3599, 3600, 47 * 3600, 48 * 3600].map((seconds) =>
      formatRelativeTime(seconds * 1000),
    );
    assert.deepEqual(times, [
      "just now",
      "just now",
      "5 s ago",
      "59 s ago",
      "1 min ago",
      "59 min ago",
      "1 h ago",
      "47 h ago",
      "2 d ago",
    ]);
  });

  it("of sizes and durations", () => {
    assert.deepEqual([0, 1023.9, 1536, 10 * 1024, 12 * 2 ** 40].map(formatBytes), [
      "0 B",
      "1023 B",
      "1.5 KiB",
      "10 KiB",
      "12.0 TiB",
    ]);
    assert.deepEqual([0, 0.04, 0.4, 61, 3661, 200_000].map(formatDuration), [
      "0 s",
      "<0.1 s",
      "0.4 s",
      "1 min 1 s",
      "1 h 1 min",
      "2 d 7 h",
    ]);
  });
});

describe("positions in a filter", () => {
  const text = 'name = "🚀" and x';

  it("are counted in characters by the server and in code units here", () => {
    assert.equal(codePoints(text, 11), 10);
    assert.equal(codeUnits(text, 10), 11);
    for (const index of [0, 8, 11, text.length]) assert.equal(codeUnits(text, codePoints(text, index)), index);
    assert.deepEqual([codePoints("", 0), codeUnits("", 5)], [0, 0]);
  });

  it("mark the word that cannot be read", () => {
    assert.deepEqual(errorSpan(text, 11), [12, 15]);
    assert.deepEqual(errorSpan("a  b", 1), [1, 2]);
  });

  it("mark nothing while the filter is not complete", () => {
    assert.equal(errorSpan("state = ", 8), null);
    assert.equal(errorSpan("state =", 7), null);
    assert.equal(errorSpan("", 0), null);
  });
});

describe("the offers of a filter", () => {
  it("are walked through in a circle, with the field itself between the last and the first", () => {
    const walk = (step, count, index = -1) => Array.from({ length: count }, () => (index = nextIndex(index, step, 3)));
    assert.deepEqual(walk(1, 5), [0, 1, 2, -1, 0]);
    assert.deepEqual(walk(-1, 5), [2, 1, 0, -1, 2]);
    assert.equal(nextIndex(-1, 1, 0), -1);
  });

  it("are separated from the text after them by one space", () => {
    assert.equal(textToInsert("state", ""), "state ");
    assert.equal(textToInsert("state", "= x"), "state ");
    assert.equal(textToInsert("state", " = x"), "state");
  });
});

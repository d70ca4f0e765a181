import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { hitPieces } from "../../static/js/log/hit-text.js";
import { elapsedTicks, stuckRanks } from "../../static/js/log/lane-timeline.js";
import { LogLines } from "../../static/js/log/log-lines.js";
import { TextFinder, findFirst } from "../../static/js/log/text-finder.js";

const encode = (text) => new TextEncoder().encode(text);

function linesOf(text) {
  const lines = new LogLines();
  lines.append(encode(text));
  return lines;
}

async function find(text, lines) {
  let finder;
  await new Promise((resolve) => {
    finder = new TextFinder(() => finder?.isDone && resolve());
    finder.start(text, lines);
    if (!finder.needle) resolve();
  });
  return finder;
}

describe("finding text in a log", () => {
  it("ignores case and colours, and moves around the ends", async () => {
    const finder = await find("ERROR", linesOf("an error\nfine\nEr\x1b[31mror\nfine\nerror\n"));
    assert.deepEqual(finder.hits, [0, 2, 4]);
    assert.equal(finder.label, "3 lines");
    assert.deepEqual([finder.move(1, 1), finder.move(1), finder.move(1), finder.move(-1)], [2, 4, 0, 4]);
    assert.equal(finder.label, "3 of 3");
  });

  it("begins at the first hit if there is none after the place", async () => {
    const finder = await find("a", linesOf("a\nb\n"));
    assert.equal(finder.label, "1 line");
    assert.equal(finder.move(1, 1), 0);
  });

  it("finds nothing", async () => {
    const finder = await find("missing", linesOf("text\n"));
    assert.deepEqual([finder.label, finder.move(1), finder.line], ["none", null, null]);
    assert.equal((await find("", linesOf("text\n"))).label, "");
  });

  it("searches the last line, too, which has no newline yet", async () => {
    const lines = linesOf("first\nlast error");
    const finder = await find("error", lines);
    assert.deepEqual(finder.hits, [1]);
    assert.equal(finder.move(1), 1);
    lines.append(encode(" and more"));
    finder.resume();
    assert.deepEqual([finder.hits, finder.line], [[1], 1]);
    lines.append(encode("\rrewritten  and nothing left of it\nnext error\nopen"));
    finder.resume();
    assert.deepEqual(finder.hits, [2]);
    assert.equal(finder.line, 2);
  });

  it("searches a long log in slices", async () => {
    const finder = await find("needle", linesOf(`${"hay\n".repeat(100_000)}needle\n`));
    assert.deepEqual(finder.hits, [100_000]);
  });

  it("finds the first line with a text, in its case", async () => {
    const lines = linesOf("traceback\nTraceback (most\nTraceback (most\n");
    assert.equal(await findFirst("Traceback", lines), 1);
    assert.equal(await findFirst("Traceback", lines, 2), 2);
    assert.equal(await findFirst("missing", lines), -1);
  });
});

describe("the text of a search hit", () => {
  const shown = (text, spans) =>
    hitPieces({ text, spans })
      .map((piece) => (piece.isMatch ? `[${piece.text}]` : piece.text))
      .join("");

  for (const [text, spans, expected] of [
    ["an error here", [[3, 8]], "an [error] here"],
    ["error", [[0, 5]], "[error]"],
    [
      "a b a",
      [
        [0, 1],
        [4, 5],
      ],
      "[a] b [a]",
    ],
    ["    indented error", [[13, 18]], "indented [error]"],
    ["    indented", [[2, 6]], "[  in]dented"],
    ["    ", [[0, 2]], "[  ]  "],
    ["", [], ""],
    ["no span", [], "no span"],
    ["🚀🚀 rocket", [[3, 9]], "🚀🚀 [rocket]"],
    [`${"x".repeat(40)}error`, [[40, 45]], `…${"x".repeat(12)}[error]`],
  ]) {
    it(`is ${JSON.stringify(expected)}`, () => assert.equal(shown(text, spans), expected));
  }
});

describe("stuck ranks", () => {
  for (const [silences, stuck] of [
    [{ a: 1, b: 2, c: 300 }, ["c"]],
    [{ a: 300, b: 310, c: 290 }, []],
    [{ a: 1, b: 15 }, []],
    [{ a: 1, b: 25 }, ["b"]],
    [{ a: 500 }, []],
    [{ a: 0, b: 0, c: 0, d: 120, e: 130 }, ["d", "e"]],
    [{}, []],
  ]) {
    it(`of ${JSON.stringify(silences)} are ${JSON.stringify(stuck)}`, () => {
      assert.deepEqual([...stuckRanks(new Map(Object.entries(silences)))], stuck);
    });
  }
});

describe("the axis of the lanes", () => {
  for (const span of [1, 7, 59, 61, 600, 3599, 86_400, 40 * 86_400]) {
    it(`of ${span} s has a few ticks at round times`, () => {
      const [first, ...ticks] = elapsedTicks(span, 0);
      assert.equal(first[0], 0);
      assert.ok(ticks.length <= 4);
      for (const [at, label] of ticks) {
        assert.ok(at > 0 && at < span);
        assert.match(label, /^\+\d+(\.5)? (s|min|h|d)$/);
      }
    });
  }
});

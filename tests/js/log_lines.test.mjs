import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { ByteBuffer } from "../../static/js/log/byte-buffer.js";
import { lastLine } from "../../static/js/log/lanes.js";
import { splitAtMatches } from "../../static/js/log/line-element.js";
import { LogLines, MAX_LINE_BYTES, countBelow } from "../../static/js/log/log-lines.js";

const encode = (text) => new TextEncoder().encode(text);
const ESC = "\x1b";

function linesOf(...chunks) {
  const lines = new LogLines();
  for (const chunk of chunks) lines.append(typeof chunk === "string" ? encode(chunk) : Uint8Array.from(chunk));
  return lines;
}

const texts = (lines) => Array.from({ length: lines.count }, (_, line) => lines.plain(line));
const colors = (lines) => Array.from({ length: lines.count }, (_, line) => lines.segments(line)[0]?.style.fg ?? null);
const bytewise = (text) => Array.from(encode(text), (byte) => [byte]);

describe("a byte buffer", () => {
  const BLOCK = 1 << 20;

  it("returns what was appended, also over the border of two blocks", () => {
    const buffer = new ByteBuffer();
    const data = Uint8Array.from({ length: 2 * BLOCK + 7 }, (_, index) => index % 251);
    for (let start = 0; start < data.length; start += 300_001) buffer.append(data.subarray(start, start + 300_001));
    assert.equal(buffer.length, data.length);
    for (const [start, end] of [
      [0, 5],
      [BLOCK - 3, BLOCK + 3],
      [BLOCK, 2 * BLOCK],
      [5, 2 * BLOCK + 7],
    ]) {
      assert.deepEqual(buffer.slice(start, end), data.slice(start, end));
    }
  });

  it("returns nothing beyond its end and for an empty range", () => {
    const buffer = new ByteBuffer();
    assert.deepEqual(buffer.slice(0, 10), new Uint8Array(0));
    buffer.append(encode("abc"));
    buffer.append(new Uint8Array(0));
    assert.deepEqual(buffer.slice(2, 99), encode("c"));
    assert.deepEqual(buffer.slice(2, 2), new Uint8Array(0));
  });
});

describe("the lines of a log", () => {
  it("are the same however the bytes arrive", () => {
    const text = "one\ntwo ä\n\nlast 🚀";
    const expected = ["one", "two ä", "", "last 🚀"];
    assert.deepEqual(texts(linesOf(text)), expected);
    assert.deepEqual(texts(linesOf(...bytewise(text))), expected);
  });

  it("are none at first, and the open line counts as soon as it has a byte", () => {
    assert.equal(linesOf().count, 0);
    assert.equal(linesOf("").count, 0);
    assert.equal(linesOf("a").count, 1);
    assert.equal(linesOf("a\n").count, 1);
    assert.equal(linesOf("a\nb").count, 2);
  });

  it("show bytes that are not UTF-8 as replacement characters", () => {
    assert.deepEqual(texts(linesOf([0x6f, 0x6b, 0xff, 0xfe, 0x0a, 0x80, 0x0a])), ["ok\ufffd\ufffd", "\ufffd"]);
  });

  it("keep a colour until it is reset, also if a sequence arrives in two pieces", () => {
    const text = `a\n${ESC}[31mb\nc${ESC}[0m\nd\n${ESC}[3`;
    assert.deepEqual(colors(linesOf(text, "2me\nf\n")), [null, 1, 1, null, 2, 2]);
    assert.deepEqual(colors(linesOf(...bytewise(`${text}2me\nf\n`))), [null, 1, 1, null, 2, 2]);
  });

  it("are found by the offset of a byte in the file", () => {
    const lines = linesOf("one\ntwo\nthree\n");
    assert.deepEqual(
      [0, 3, 4, 8, 13, 999].map((offset) => lines.at(offset)),
      [0, 0, 1, 2, 2, 2],
    );
  });

  it("have numbers of the file once one of them is known", () => {
    const lines = new LogLines(1000);
    lines.append(encode("tail\nof\na log\n"));
    assert.equal(lines.end, 1014);
    assert.equal(lines.at(1005), 1);
    lines.renumber(1, 52);
    assert.deepEqual(
      [0, 1, 2].map((line) => lines.number(line)),
      [51, 52, 53],
    );
  });

  it("are many", () => {
    const lines = linesOf("x\n".repeat(20_000));
    assert.equal(lines.count, 20_000);
    assert.equal(lines.plain(19_999), "x");
    assert.equal(lines.at(39_998), 19_999);
  });
});

describe("an endless line", () => {
  it("is split between characters and has one number", () => {
    const lines = linesOf("ä".repeat(40_000) + "\nnext\n");
    assert.deepEqual(
      [0, 1, 2, 3].map((line) => lines.number(line)),
      [1, null, null, 2],
    );
    assert.equal(texts(lines).slice(0, 3).join(""), "ä".repeat(40_000));
    assert.ok(texts(lines).every((text) => !text.includes("\ufffd")));
  });

  it("keeps only the last drawing of a progress bar, and its colour", () => {
    const bar = (step) => `\r${String(step).padStart(7)}|${"#".repeat(50)}`;
    const bars = Array.from({ length: 2000 }, (_, step) => bar(step)).join("");
    assert.deepEqual(texts(linesOf(bars, "\ndone\n")), [bar(1999).slice(1), "done"]);
    const lines = linesOf(`${ESC}[35m${bars}`, "\nnext\n");
    assert.deepEqual(colors(lines), [5, 5]);
  });

  const long = "a".repeat(MAX_LINE_BYTES + 100);

  it("keeps its colour in the second piece, although a reset follows", () => {
    const text = `${ESC}[31m${long}${ESC}[0m\nplain\n`;
    assert.deepEqual(colors(linesOf(text)), [1, 1, null]);
    assert.deepEqual(colors(linesOf(text.slice(0, 70), text.slice(70))), [1, 1, null]);
  });

  it("gives the colour that begins in its second piece to the next line", () => {
    assert.deepEqual(colors(linesOf(`${long}${ESC}[31mred\nstill red\n`)), [null, null, 1]);
  });

  for (const sequence of [`${ESC}[31m`, `${ESC}[38;2;10;20;30m`]) {
    it(`is not split inside ${JSON.stringify(sequence)}`, () => {
      for (let before = 1; before < sequence.length; before++) {
        const lines = linesOf(`${"a".repeat(MAX_LINE_BYTES - before)}${sequence}${"b".repeat(200)}\n`);
        assert.deepEqual(
          texts(lines).map((text) => text.length),
          [MAX_LINE_BYTES - before, 200],
        );
        assert.notEqual(lines.segments(1)[0].style.fg, null);
      }
    });
  }
});

describe("countBelow", () => {
  it("counts ascending values below a limit", () => {
    const values = [1, 3, 3, 8];
    assert.deepEqual(
      [0, 1, 2, 3, 4, 8, 9].map((limit) => countBelow(values, 4, limit)),
      [0, 0, 1, 1, 3, 3, 4],
    );
    assert.equal(countBelow([], 0, 5), 0);
    assert.equal(countBelow(values, 2, 99), 2);
  });
});

describe("the last line", () => {
  for (const [text, last] of [
    ["", ""],
    ["\n\n", ""],
    ["one\ntwo\n", "two"],
    ["one\n   \n", "one"],
    [`one\n${ESC}[31m  red ${ESC}[0m\n${ESC}[0m\n`, "red"],
    ["10%\r20%", "20%"],
  ]) {
    it(`of ${JSON.stringify(text)} is ${JSON.stringify(last)}`, () => assert.equal(lastLine(text), last));
  }

  it("has at most 300 characters", () => assert.equal(lastLine("x".repeat(1000)).length, 300));
});

describe("the matches in a line", () => {
  const split = (parts, needle) =>
    splitAtMatches(
      parts.map((text, style) => ({ text, style })),
      needle,
    ).map(({ text, style, mark }) => [text, style, mark ?? false]);

  it("may span differently coloured segments", () => {
    assert.deepEqual(split(["say Hel", "lo hello"], "hello"), [
      ["say ", 0, false],
      ["Hel", 0, true],
      ["lo", 1, true],
      [" ", 1, false],
      ["hello", 1, true],
    ]);
    assert.deepEqual(split(["h", "e", "y"], "hey"), [
      ["h", 0, true],
      ["e", 1, true],
      ["y", 2, true],
    ]);
  });

  it("may be adjacent, everywhere or nowhere", () => {
    assert.deepEqual(split(["abab"], "ab"), [
      ["ab", 0, true],
      ["ab", 0, true],
    ]);
    assert.deepEqual(split(["abc"], "x"), [["abc", 0, false]]);
    assert.deepEqual(split([], "x"), []);
  });

  it("are in the right place after characters that are longer in lower case", () => {
    assert.deepEqual(split(["İİ Error"], "error"), [
      ["İİ ", 0, false],
      ["Error", 0, true],
    ]);
  });
});

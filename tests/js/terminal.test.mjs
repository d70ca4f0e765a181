import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { PLAIN, applySgr } from "../../static/js/log/ansi.js";
import { plainText, renderLine } from "../../static/js/log/terminal.js";

const ESC = "\x1b";

describe("the visible text of a line", () => {
  for (const [text, visible] of [
    ["", ""],
    ["plain", "plain"],
    ["tab\there", "tab\there"],
    ["10%\r50%\r100%", "100%"],
    ["abcdef\rxy", "xycdef"],
    ["windows\r", "windows"],
    ["abc\b\bX", "aXc"],
    ["\b\bX", "X"],
    ["bell\x07 nul\x00 del\x7f", "bell nul del"],
    [`abc\r${ESC}[K`, ""],
    [`abcdef\r${ESC}[2Cx${ESC}[K`, "abx"],
    [`abc${ESC}[1K!`, "   !"],
    [`abc${ESC}[2Kx`, "   x"],
    [`abc${ESC}[3Kx`, "abcx"],
    [`abcdef\r${ESC}[J`, ""],
    [`abc\r${ESC}[0Jx`, "x"],
    [`abc${ESC}[2Jx`, "   x"],
    [`ab${ESC}[5Gc`, "ab  c"],
    [`abc${ESC}[9Dx`, "xbc"],
    [`${ESC}]0;title\x07text`, "text"],
    [`${ESC}]8;;http://a${ESC}\\link${ESC}]8;;${ESC}\\`, "link"],
    [`${ESC}Pdevice string${ESC}\\text`, "text"],
    [`${ESC}(Bascii`, "ascii"],
    [`${ESC}[?25lhidden cursor${ESC}[?25h`, "hidden cursor"],
    ["日本\b語", "日語"],
    ["🚀\r🛑", "🛑"],
  ]) {
    it(`of ${JSON.stringify(text)} is ${JSON.stringify(visible)}`, () => assert.equal(plainText(text), visible));
  }

  it("does not grow without limit when the cursor moves far to the right", () => {
    const text = plainText(`${ESC}[999999999Cfar`);
    assert.ok(text.endsWith("far"));
    assert.ok(text.length < 100_000);
  });

  for (const cut of [`${ESC}`, `${ESC}[`, `${ESC}[3`, `${ESC}[38;5;20`, `${ESC}]0;half a title`, `${ESC}Phalf`]) {
    it(`hides the sequence ${JSON.stringify(cut)}, whose rest has not arrived`, () => {
      assert.equal(plainText(`text${cut}`), "text");
    });
  }

  it("shows what follows a malformed sequence", () => {
    assert.equal(plainText(`a${ESC}[3éb`), "aéb");
    assert.deepEqual(renderLine(`${ESC}[${ESC}[31mred`).segments, [{ text: "red", style: { ...PLAIN, fg: 1 } }]);
    assert.equal(plainText(`${ESC}]0;never ended${ESC}[1mtext`), "text");
  });
});

describe("the style after SGR codes", () => {
  for (const [codes, style] of [
    ["", {}],
    ["0", {}],
    ["31", { fg: 1 }],
    ["97", { fg: 15 }],
    ["44", { bg: 4 }],
    ["107", { bg: 15 }],
    ["1;4", { flags: 9 }],
    ["1;2;22", {}],
    ["31;39", {}],
    ["44;49", {}],
    ["31;0", {}],
    ["31;;1", { flags: 1 }],
    ["7;31", { fg: 1, flags: 16 }],
    ["4:3", { flags: 8 }],
    ["4;4:0", {}],
    ["38;5;9", { fg: 9 }],
    ["38;5;16", { fg: "#000000" }],
    ["38;5;208", { fg: "#ff8700" }],
    ["38;5;231", { fg: "#ffffff" }],
    ["38;5;232", { fg: "#080808" }],
    ["48;5;244", { bg: "#808080" }],
    ["48;5;255", { bg: "#eeeeee" }],
    ["38;2;1;2;255", { fg: "#0102ff" }],
    ["38;2;1;2;255;1", { fg: "#0102ff", flags: 1 }],
    ["38:2:1:2:255", { fg: "#0102ff" }],
    ["38:2::1:2:255", { fg: "#0102ff" }],
    ["38:2:0:1:2:255", { fg: "#0102ff" }],
    ["38:2:0:1:2:255:0:1;1", { fg: "#0102ff", flags: 1 }],
    ["38:5:208;1", { fg: "#ff8700", flags: 1 }],
    ["58;5;9;1", { flags: 1 }],
    ["58;2;9;9;9", {}],
    ["58:2::9:9:9", {}],
    ["38;2;1;2;999", {}],
    ["38;5;300", {}],
    ["38;5", { fg: 0 }],
    ["38;2;1", {}],
    ["38", {}],
    ["9999", {}],
  ]) {
    it(`${codes || "(none)"} is ${JSON.stringify(style)}`, () => {
      const expected = { ...PLAIN, ...style };
      assert.deepEqual(applySgr(PLAIN, codes), expected);
      assert.deepEqual(renderLine(`${ESC}[${codes}mx`).segments, [{ text: "x", style: expected }]);
    });
  }

  it("is the same object for equal styles", () => {
    assert.equal(applySgr(PLAIN, "31;1"), applySgr(PLAIN, "1;31"));
    assert.equal(applySgr(applySgr(PLAIN, "31"), "0"), PLAIN);
  });
});

describe("segments", () => {
  it("are as long as the style lasts", () => {
    const { segments, end } = renderLine(`a${ESC}[31mbc${ESC}[0md`);
    assert.deepEqual(
      segments.map(({ text, style }) => [text, style.fg]),
      [
        ["a", null],
        ["bc", 1],
        ["d", null],
      ],
    );
    assert.equal(end, PLAIN);
  });

  it("begin with the style of the line before, and tell that of the next", () => {
    const red = applySgr(PLAIN, "31");
    assert.deepEqual(renderLine("text", red), { segments: [{ text: "text", style: red }], end: red });
    assert.equal(renderLine(`a${ESC}[32m`, red).end.fg, 2);
    assert.deepEqual(renderLine("", red), { segments: [], end: red });
  });

  it("keep the style of each character that is overwritten in part", () => {
    const { segments } = renderLine(`${ESC}[31mabc\r${ESC}[32mX`);
    assert.deepEqual(
      segments.map(({ text, style }) => [text, style.fg]),
      [
        ["X", 2],
        ["bc", 1],
      ],
    );
  });
});

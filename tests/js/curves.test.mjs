import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { readState, withState } from "../../static/js/curves/address.js";
import { axisOf, relativeTicks } from "../../static/js/curves/axes.js";
import { sliderPosition, weightAt } from "../../static/js/curves/controls.js";
import { foldState, groupAfter, groupOf, matchingKeys, sortByGroup } from "../../static/js/curves/group.js";
import { CurveLine, nearestIndex } from "../../static/js/curves/line.js";
import { movingAverage } from "../../static/js/curves/moving-average.js";
import { formatNumber, formatNumberRange } from "../../static/js/curves/numbers.js";
import { xRange, yRange, zoomSpan } from "../../static/js/curves/ranges.js";

const DEFAULTS = {
  axis: "step",
  smoothing: 0,
  logx: false,
  logy: false,
  q: "",
  group: "",
  keys: [],
  hide: [],
  wide: [],
  closed: [],
  opened: [],
  spans: {},
  events: null,
};

describe("the moving average", () => {
  it("is corrected for its start", () => {
    assert.deepEqual(
      movingAverage([4, 4, 4], 0.9).map((value) => Number(value.toFixed(9))),
      [4, 4, 4],
    );
    assert.deepEqual(movingAverage([0, 1], 0.5), [0, 2 / 3]);
  });

  it("leaves values that are not numbers where they are", () => {
    assert.deepEqual(movingAverage([1, null, 1], 0.5), [1, null, 1]);
    assert.deepEqual(movingAverage([null, NaN, Infinity], 0.5), [null, NaN, Infinity]);
    assert.deepEqual(movingAverage([], 0.5), []);
  });

  it("without a weight is the values themselves", () => {
    const values = [3, 1, 2];
    assert.equal(movingAverage(values, 0), values);
  });
});

describe("numbers", () => {
  it("that are none have a symbol", () => {
    const names = ["NaN", "Infinity", "-Infinity", null, undefined];
    assert.deepEqual(names.map(formatNumber), ["NaN", "∞", "−∞", "–", "–"]);
    assert.deepEqual([NaN, Infinity, -Infinity].map(formatNumber), ["NaN", "∞", "−∞"]);
  });

  it("of a range are written once if they read alike", () => {
    assert.equal(formatNumberRange([3, 1, 2]), "1 – 3");
    assert.equal(formatNumberRange([0.11111, 0.11112]), "0.1111");
    assert.equal(formatNumberRange([null, 4]), "4");
    assert.equal(formatNumberRange(["NaN"]), "NaN");
    assert.equal(formatNumberRange([null]), "–");
    assert.equal(formatNumberRange([]), "–");
  });
});

describe("the state in the address", () => {
  it("ignores what is invalid", () => {
    assert.deepEqual(readState("?axis=epoch&smoothing=7&logx=yes&from=9&to=3&hide=,,"), DEFAULTS);
    assert.deepEqual(readState("?smoothing=-1&from=x&to=4"), DEFAULTS);
    assert.deepEqual(readState(""), DEFAULTS);
  });

  it("is read again as it was written", () => {
    const state = {
      ...DEFAULTS,
      axis: "relative",
      smoothing: 0.95,
      logy: true,
      q: "a b&c",
      hide: ["3", "4"],
      wide: ["train/loss", "a,b"],
      spans: { relative: [-1.5, 2e6], step: [3, 9], "metrics.a:b,c": [0, 0.5] },
      events: false,
      keys: ["x", "y"],
      group: "params.lr",
      closed: ["", "eval"],
      opened: ["system"],
    };
    const address = withState("http://hub/runs/1/?tab=metrics#top", state);
    assert.deepEqual(readState(new URL(address, "http://hub").search), state);
  });

  it("leaves the rest of the address and the defaults out of it", () => {
    assert.equal(withState("http://hub/runs/1/?tab=metrics&axis=time#top", DEFAULTS), "/runs/1/?tab=metrics#top");
    assert.equal(withState("http://hub/", { ...DEFAULTS, hide: ["1", "2"] }), "/?hide=1,2");
  });
});

describe("the axis since the start", () => {
  for (const span of [0.005, 1, 45, 600, 7_200, 86_400, 40 * 86_400, 4_000 * 86_400]) {
    it(`of ${span} s has a few different ticks`, () => {
      const ticks = relativeTicks(0, span, 400);
      assert.ok(ticks.length >= 2 && ticks.length <= 7, `${ticks.length} ticks`);
      assert.deepEqual(ticks[0], [0, "0"]);
      assert.equal(new Set(ticks.map(([, label]) => label)).size, ticks.length);
      assert.ok(ticks.every(([at]) => at >= 0 && at <= span));
    });
  }

  it("writes times before the start with a minus", () => {
    assert.deepEqual(
      relativeTicks(-7200, 0, 130).map(([, label]) => label),
      ["−2 h", "−1 h", "0"],
    );
    assert.equal(axisOf("relative").format(-90), "−1 min 30 s");
    assert.equal(axisOf("relative").format(1.234), "1.23 s");
    assert.equal(axisOf("step").format(1234.4), "step 1,234");
  });
});

describe("a line", () => {
  const answer = {
    key: "loss",
    x: [0, 10, 20, 30],
    y: [4, 3, 2, 1],
    marks: [
      [12, "NaN"],
      [14, "NaN"],
      [40, "Infinity"],
    ],
  };
  const line = new CurveLine(answer, "a");
  const view = { from: 0, to: 40 };

  it("has a gap at each mark", () => {
    assert.deepEqual(line.withGaps(line.y), [
      [0, 10, 12, 20, 30, 40],
      [4, 3, null, 2, 1, null],
    ]);
    const whole = new CurveLine({ ...answer, marks: [] }, "a");
    assert.deepEqual(whole.withGaps(whole.y), [answer.x, answer.y]);
  });

  it("has the value of the nearest point or mark", () => {
    assert.deepEqual(
      [4, 11.5, 29, 39].map((at) => line.valueAt(at, view, 0).value),
      [4, "NaN", 1, "Infinity"],
    );
  });

  it("has no value beyond its ends", () => {
    assert.equal(line.valueAt(60, { from: 0, to: 100 }, 0), null);
    assert.equal(line.valueAt(41, { from: 0, to: 100 }, 0).value, "Infinity");
    const empty = new CurveLine({ key: "loss", x: [], y: [] }, "a");
    assert.deepEqual([empty.isEmpty, empty.valueAt(5, view, 0)], [true, null]);
  });

  it("of marks alone has their values", () => {
    const marks = new CurveLine({ key: "loss", x: [], y: [], marks: [[5, "NaN"]] }, "a");
    assert.equal(marks.isEmpty, false);
    assert.equal(marks.valueAt(5, view, 0).value, "NaN");
  });

  it("uses the hub's average if it has the weight, and its own otherwise", () => {
    const smoothed = new CurveLine({ ...answer, smooth: [9, 9, 9, 9], weight: 0.5 }, "a");
    assert.deepEqual(smoothed.smoothedValues(0), [4, 3, 2, 1]);
    assert.deepEqual(smoothed.smoothedValues(0.5), [9, 9, 9, 9]);
    assert.ok(Math.abs(smoothed.smoothedValues(0.4)[0] - 4) < 1e-9);
  });

  it("of a group has a spread if the group has several runs", () => {
    const band = { key: "loss", x: [0], mean: [2], low: [1], high: [5], runs: ["a", "b"] };
    assert.equal(new CurveLine(band, "group:1").valueAt(0, view, 0).spread, 3);
    assert.equal(new CurveLine({ ...band, runs: ["a"] }, "group:1").valueAt(0, view, 0).spread, null);
  });

  it("finds the nearest of ascending numbers", () => {
    assert.deepEqual(
      [-5, 4, 6, 99].map((at) => nearestIndex([0, 10, 20], at)),
      [0, 0, 1, 2],
    );
    assert.equal(nearestIndex([], 5), -1);
  });
});

describe("the ranges of the axes", () => {
  const line = (x, y, more = {}) => new CurveLine({ key: "loss", x, y, ...more }, "a");
  const view = { from: 0, to: 10, isLogY: false, smoothing: 0 };
  const rounded = (range) => range.map((value) => Number(value.toFixed(6)));

  it("cover all lines, or the span of the view", () => {
    const lines = [line([0, 5], [1, 2]), line([3, 9], [1, 2], { marks: [[12, "NaN"]] })];
    assert.deepEqual(xRange(lines, { from: null, to: null, isLog: false }), { from: 0, to: 12 });
    assert.deepEqual(xRange(lines, { from: 2, to: 4, isLog: false }), { from: 2, to: 4 });
  });

  it("are not empty for a single point", () => {
    assert.deepEqual(xRange([line([7], [1])], { from: null, to: null, isLog: false }), { from: 6.5, to: 7.5 });
    assert.deepEqual(xRange([line([8], [1])], { from: null, to: null, isLog: true }), { from: 4, to: 16 });
    const [low, high] = yRange([line([5], [0])], view);
    assert.ok(low < 0 && high > 0);
  });

  it("begin above 0 on a logarithmic axis", () => {
    assert.deepEqual(xRange([line([0, 2, 8], [1, 1, 1])], { from: null, to: null, isLog: true }), { from: 2, to: 8 });
    assert.deepEqual(xRange([line([0], [1])], { from: null, to: null, isLog: true }), { from: 1, to: 10 });
    assert.deepEqual(
      rounded(yRange([line([0, 5], [-1, 100]), line([1], [1])], { ...view, isLogY: true })),
      [-0.12, 2.12],
    );
  });

  it("ignore values that are not numbers or far from the span", () => {
    const lines = [line([0, 4, 5, 6, 20, 30], [9, 1, null, 2, 5, 999])];
    assert.deepEqual(rounded(yRange(lines, { ...view, from: 3, to: 7 })), [0.52, 9.48]);
    assert.deepEqual(yRange([line([5], [null])], view), [0, 1]);
    assert.deepEqual(yRange([], view), [0, 1]);
  });

  it("of a zoom are whole steps or milliseconds, and never empty", () => {
    assert.deepEqual(zoomSpan("step", 2.4, 7.1), [2, 8]);
    assert.deepEqual(zoomSpan("step", 3, 3), [3, 4]);
    assert.deepEqual(zoomSpan("time", 1.23456, 2.34567), [1.235, 2.346]);
    assert.deepEqual(zoomSpan("relative", 1.2341, 1.2342), [1.234, 1.235]);
    assert.deepEqual(zoomSpan("metrics.lr", 0.000123456, 0.000234567), [0.0001234560, 0.000234567]);
    assert.deepEqual(zoomSpan("metrics.samples", 1234567.891, 9876543.21), [1234568, 9876543]);
  });
});

describe("groups of metrics", () => {
  const keys = ["train/loss", "system/gpu", "loss", "eval/b", "eval/a10", "eval/a9", "/odd"];

  it("begin with names without a prefix and end with the machine's", () => {
    assert.deepEqual(sortByGroup(keys), ["/odd", "loss", "eval/a9", "eval/a10", "eval/b", "train/loss", "system/gpu"]);
    assert.deepEqual(["a/b/c", "a", "/a", ""].map(groupOf), ["a", "", "", ""]);
  });

  it("come before the next one, in whatever order they were added", () => {
    assert.equal(groupAfter("a", ["train", "eval", "system", "a"]), "eval");
    assert.equal(groupAfter("", ["train", "eval"]), "eval");
    assert.equal(groupAfter("system", ["train", "", "system"]), undefined);
  });

  it("have the metrics that match every word of the filter", () => {
    assert.deepEqual(matchingKeys(keys, { q: "", keys: [] }), sortByGroup(keys));
    assert.deepEqual(matchingKeys(keys, { q: "A1 eval", keys: [] }), ["eval/a10"]);
    assert.deepEqual(matchingKeys(keys, { q: "loss", keys: ["train/loss", "gone"] }), ["train/loss"]);
    assert.deepEqual(matchingKeys(keys, { q: "nothing", keys: [] }), []);
  });

  it("remember what is folded, also while the filter hides them", () => {
    const group = (name, isOpen) => ({ name, isOpen, isOpenByDefault: name !== "system" });
    const state = { closed: ["eval", "train"], opened: [] };
    assert.deepEqual(foldState([group("train", true), group("system", true)], state), {
      closed: ["eval"],
      opened: ["system"],
    });
    assert.deepEqual(foldState([group("train", false)], { closed: [], opened: ["system"] }), {
      closed: ["train"],
      opened: ["system"],
    });
  });
});

describe("the smoothing slider", () => {
  it("leads from a position to a weight and back", () => {
    assert.deepEqual([0, 50, 90, 95, 100].map(weightAt), [0, 0.5, 0.9, 0.95, 0.999]);
    for (let position = 0; position <= 100; position++) assert.equal(sliderPosition(weightAt(position)), position);
  });
});

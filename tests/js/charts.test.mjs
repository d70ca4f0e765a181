import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { fractionOf, valueAtFraction, valueAtX, xOfValue } from "../../static/js/charts/coordinates.js";
import { DrawQueue } from "../../static/js/charts/draw-queue.js";
import { axisStart, firstTime, firstTimeOfNode, fromStart } from "../../static/js/charts/first-sample.js";
import { heatRows, largestValue } from "../../static/js/charts/heat-rows.js";
import { newestValue, summarizeLines, summarizeSpan } from "../../static/js/charts/table.js";
import { linePath, scaleOf, yTicks } from "../../static/js/charts/svg-plot.js";
import { formatMoment, timeTicks } from "../../static/js/charts/time-axis.js";
import { parseRange, rangeQuery, validRange } from "../../static/js/charts/time-range.js";
import { bandOutline, bandTraces, lineTrace } from "../../static/js/charts/traces.js";
import { formatValue, formatValueRange, unitScale } from "../../static/js/charts/units.js";

const GIB = 2 ** 30;

describe("a value with its unit", () => {
  for (const [value, unit, text] of [
    [87, "%", "87 %"],
    [0, "%", "0 %"],
    [12.34, "%", "12.3 %"],
    [1.234, "%", "1.23 %"],
    [-3.5, "°C", "-3.5 °C"],
    [70.2 * GIB, "B", "70.2 GiB"],
    [0, "B", "0 B"],
    [1023, "B", "1023 B"],
    [1024, "B", "1 KiB"],
    [3 * 2 ** 60, "B", "3072 PiB"],
    [2.5e9, "B/s", "2.5 GB/s"],
    [999_000, "B/s", "999 kB/s"],
    [1980, "MHz", "1.98 GHz"],
    [512.4, "W", "512 W"],
    [1.5, "", "1.5"],
    [null, "%", "–"],
    [undefined, "B", "–"],
    [NaN, "W", "–"],
    [Infinity, "W", "–"],
  ]) {
    it(`${value} ${unit} is ${text}`, () => assert.equal(formatValue(value, unit), text));
  }

  it("has one unit for a range, and none for nothing", () => {
    assert.equal(formatValueRange([34, null, 97], "%"), "34–97 %");
    assert.equal(formatValueRange([5, 5], "W"), "5 W");
    assert.equal(formatValueRange([512 * 2 ** 20, GIB], "B"), "0.5–1 GiB");
    assert.equal(formatValueRange([null], "%"), "–");
    assert.equal(formatValueRange([], "%"), "–");
  });

  it("is scaled by the largest value of an axis", () => {
    assert.deepEqual(unitScale("B", 70 * GIB), { divisor: GIB, unit: "GiB" });
    assert.deepEqual(unitScale("W", 1e9), { divisor: 1, unit: "W" });
  });
});

describe("the ticks of a time axis", () => {
  const start = 1_795_000_123;

  for (const span of [5, 30, 900, 3600, 86_400, 7 * 86_400, 30 * 86_400]) {
    it(`of ${span} s are few, different and within it`, () => {
      const ticks = timeTicks(start, start + span, 400);
      assert.ok(ticks.length >= 1 && ticks.length <= 7, `${ticks.length} ticks`);
      assert.ok(ticks.every(([at]) => at >= start && at <= start + span));
      assert.equal(new Set(ticks.map(([, label]) => label)).size, ticks.length);
    });
  }

  it("end, however long the axis is", () => assert.ok(timeTicks(0, 1e12, 400).length <= 50));

  it("name the day of a moment only on a long axis", () => {
    assert.match(formatMoment(start, 3600), /^\d\d:\d\d:\d\d$/);
    assert.match(formatMoment(start, 86_400), /\S+ \d\d:\d\d:\d\d$/);
  });
});

describe("the span in the address", () => {
  for (const [search, range] of [
    ["", { preset: "1h" }],
    ["?range=7d", { preset: "7d" }],
    ["?range=constructor", { preset: "1h" }],
    ["?from=1000&to=2000", { preset: null, from: 1000, to: 2000 }],
    ["?from=1000&to=2000&range=7d", { preset: null, from: 1000, to: 2000 }],
    ["?from=1000.4&to=2000.6", { preset: null, from: 1000, to: 2001 }],
    ["?from=2000&to=1000", { preset: "1h" }],
    ["?from=1000", { preset: "1h" }],
    ["?from=x&to=y", { preset: "1h" }],
    ["?from=1e400&to=2000", { preset: "1h" }],
    ["?from=1000&to=1001", { preset: null, from: 996, to: 1006 }],
    ["?from=2026-11-21T10:00:00Z&to=2026-11-21T11:00:00Z", { preset: null, from: 1795255200, to: 1795258800 }],
  ]) {
    it(`${search || "(none)"} is ${JSON.stringify(range)}`, () => assert.deepEqual(parseRange(search), range));
  }

  it("is read again as it was written", () => {
    for (const range of [{ preset: "6h" }, { preset: null, from: 1000, to: 2000 }]) {
      assert.deepEqual(parseRange(`?${new URLSearchParams(rangeQuery(range))}`), range);
    }
  });

  it("is the default where a form field is empty", () => {
    assert.deepEqual(validRange({ from: NaN, to: 5 }), { preset: "1h" });
  });
});

describe("coordinates", () => {
  const view = { from: 10, to: 30, width: 266, isLog: false }; // 200 pixels beside the margins

  it("lead from a value to a pixel and back", () => {
    assert.equal(xOfValue(20, view), 156);
    assert.equal(valueAtX(156, view), 20);
    for (const isLog of [false, true]) {
      for (const fraction of [0, 0.25, 1]) {
        const value = valueAtFraction(fraction, { ...view, isLog });
        assert.ok(Math.abs(fractionOf(value, { ...view, isLog }) - fraction) < 1e-12);
      }
    }
  });

  it("end with the axis", () => assert.deepEqual([valueAtX(0, view), valueAtX(9999, view)], [10, 30]));

  it("are defined on a chart without width", () => {
    assert.ok(Number.isFinite(valueAtX(100, { ...view, width: 0 })));
  });
});

describe("the draw queue", () => {
  it("draws one after the other", async () => {
    const drawn = [];
    assert.equal(await new DrawQueue().run([1, 2, 3], (panel) => drawn.push(panel)), true);
    assert.deepEqual(drawn, [1, 2, 3]);
    assert.equal(await new DrawQueue().run([], () => {}), true);
  });

  it("stops for a newer call", async () => {
    const queue = new DrawQueue();
    const drawn = [];
    const first = queue.run(["a", "b", "c"], (panel) => drawn.push(panel));
    const second = queue.run(["d"], (panel) => drawn.push(panel));
    assert.deepEqual([await first, await second], [false, true]);
    assert.deepEqual(drawn, ["a", "d"]);
  });
});

describe("the rows of the heat map", () => {
  const answer = {
    times: [0, 10],
    rows: [
      { node: "alpha", index: 0, mean: [10, null] },
      { node: "alpha", index: 1, mean: [30, null] },
      { node: "beta", index: 0, mean: [null, 5] },
    ],
  };

  it("are GPUs", () => {
    assert.deepEqual(
      heatRows(answer).map(({ label }) => label),
      ["alpha · 0", "alpha · 1", "beta · 0"],
    );
  });

  it("are nodes where there are too many GPUs, and unknown stays unknown", () => {
    assert.deepEqual(heatRows(answer, 2), [
      { label: "alpha (2)", node: "alpha", values: [20, null] },
      { label: "beta (1)", node: "beta", values: [null, 5] },
    ]);
  });

  it("have a largest value, also those of a thousand nodes", () => {
    assert.equal(largestValue(heatRows(answer)), 30);
    assert.ok(largestValue([{ values: [null, 0] }]) > 0);
    const values = Array.from({ length: 400 }, (_, index) => index);
    assert.equal(largestValue(Array.from({ length: 1000 }, () => ({ values }))), 399);
  });
});

describe("the table of a chart", () => {
  const line = (mean, max = mean) => ({ label: "GPU 0", row: { mean, max } });

  it("summarizes what is known", () => {
    assert.deepEqual(summarizeLines([line([1, null, 3], [2, null, 9])]), [{ label: "GPU 0", now: 3, mean: 2, max: 9 }]);
    assert.deepEqual(summarizeLines([line([null, null])]), [{ label: "GPU 0", now: null, mean: null, max: null }]);
    assert.deepEqual(summarizeLines([]), []);
  });

  it("has no newest value of a GPU that has fallen silent", () => {
    assert.equal(newestValue({ mean: [1, 2, null, null] }), 2);
    assert.equal(newestValue({ mean: [1, null, null, null] }), null);
    assert.equal(newestValue({ mean: [] }), null);
  });
});

describe("the span of a run that has ended", () => {
  const line = (mean, max = mean) => ({ row: { mean, max } });

  it("is told by mean and peak, without its edges", () => {
    const lines = [line([1, 90, 92, 40]), line([0, 94, 96, 0], [0, 95, 99, 0])];
    assert.deepEqual(summarizeSpan(lines), { mean: 93, max: 99 });
  });

  it("is unknown without values", () => {
    assert.deepEqual(summarizeSpan([line([null, null, null])]), { mean: null, max: null });
    assert.deepEqual(summarizeSpan([]), { mean: null, max: null });
    assert.deepEqual(summarizeSpan([line([5])]), { mean: 5, max: 5 }, "a short run is only edges");
  });
});

describe("the traces of a panel", () => {
  const line = (mean, max = mean) => ({
    source: { times: mean.map((_, index) => index) },
    row: { mean, max },
    color: "#112233",
    dash: "solid",
  });

  it("keep gaps and divide by the scale", () => {
    assert.deepEqual(lineTrace(line([1024, null, 2048]), 1024).y, [1, null, 2]);
    assert.equal(lineTrace(line([1, 2]), 1).mode, "lines+markers");
    assert.equal(lineTrace(line([1, 2, 3, 4]), 1).mode, "lines");
  });

  it("outline a band for each stretch without a gap", () => {
    assert.deepEqual(bandOutline(line([1, 2, null, 3], [5, 6, null, 7]), 1), [
      [0, 1, 1, 0, null, 3, 3, null],
      [5, 6, 2, 1, null, 7, 3, null],
    ]);
    assert.deepEqual(bandOutline(line([null]), 1), [[], []]);
  });

  it("have bands only if there are few lines", () => {
    assert.equal(bandTraces([line([1]), line([2])], 1).length, 2);
    assert.deepEqual(
      bandTraces(
        [1, 2, 3, 4].map((value) => line([value])),
        1,
      ),
      [],
    );
    assert.equal(bandTraces([line([1])], 1)[0].fillcolor, "rgba(17, 34, 51, 0.16)");
  });
});

describe("a chart", () => {
  for (const [range, ticks] of [
    [[0, 100], [0, 50, 100]],
    [[0, 71.2], [0, 20, 40, 60]],
    [[25.3, 74.1], [40, 60]],
    [[0, 0.3], [0, 0.1, 0.2, 0.3]],
    [[0, 1], [0, 0.5, 1]],
    [[-5, 5], [-5, 0, 5]],
    [[0, 1e-9], [0, 5e-10, 1e-9]],
  ]) {
    it(`from ${range[0]} to ${range[1]} has the ticks ${ticks}`, () => assert.deepEqual(yTicks(range, 4), ticks));
  }

  const scale = { x: scaleOf([0, 10], 0, 100), y: scaleOf([0, 1], 50, 0) };

  it("draws a line in pieces where values are missing", () => {
    assert.equal(linePath({ x: [0, 1, 2, 3], y: [0, 1, null, 0.5] }, scale), "M0 50L10 0M30 25");
    assert.equal(linePath({ x: [0, 1], y: [null, null] }, scale), "");
  });

  it("does not divide by an empty range", () => assert.equal(scaleOf([3, 3], 0, 100)(3), 0));
});

describe("the begin of the axis", () => {
  it("is the first sample of a machine that was added within the span", () => {
    assert.equal(axisStart(100, 150, 160), 160);
  });
  it("is the span's for a machine that was there before, whatever is missing", () => {
    assert.equal(axisStart(100, 50, 160), 100);
  });
  it("is the span's while nothing is known", () => {
    assert.equal(axisStart(100, 150, null), 100);
    assert.equal(axisStart(100, NaN, 160), 100, "without the time of the addition");
  });
  it("is found in any list of values, and a 0 is one", () => {
    assert.equal(firstTime([1, 2, 3], [[null, null, 5], [null, 0, null]]), 2);
    assert.equal(firstTime([1, 2], [[null, null], []]), null);
    const curve = { mean: [null, 7] };
    assert.equal(firstTimeOfNode({ times: [10, 20], gpus: [{ series: { power_w: curve } }] }), 20);
  });
  it("cuts the heat map, and leaves gaps behind it", () => {
    const rows = [{ node: "a", index: 0, mean: [null, 1, null, 2] }];
    const answer = fromStart({ times: [0, 10, 20, 30], rows }, 10);
    assert.deepEqual(answer.times, [10, 20, 30]);
    assert.deepEqual(answer.rows[0].mean, [1, null, 2]);
    assert.deepEqual(rows[0].mean.length, 4, "the answer itself is not changed");
  });
});

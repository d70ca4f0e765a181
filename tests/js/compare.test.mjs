import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { axisValue, colorScale, parallelDimension } from "../../static/js/compare/dimensions.js";

describe("the axes of related values", () => {
  it("of numbers have their range, and a range if all are equal", () => {
    const axis = { label: "lr", values: [3, null, 1] };
    assert.deepEqual(parallelDimension(axis, [0, 2]), { label: "lr", values: [3, 1], range: [1, 3] });
    assert.deepEqual(parallelDimension(axis, [0]).range, [2, 4]);
    assert.deepEqual(parallelDimension(axis, []), { label: "lr", values: [], range: [0, 1] });
  });

  it("of texts have their labels in order, shortened between characters", () => {
    const values = ["run10", "run9", "run10", "🚀".repeat(30)];
    const { ticktext, values: positions } = parallelDimension({ label: "a<b", values }, [0, 1, 2, 3]);
    assert.deepEqual(
      ticktext.filter((text) => text.startsWith("run")),
      ["run9", "run10"],
    );
    assert.ok(ticktext.includes(`${"🚀".repeat(23)}…`));
    assert.equal(positions[0], positions[2]);
    assert.equal(parallelDimension({ label: "a<b", values }, [0]).label, "a&lt;b");
  });

  it("have a colour for each run", () => {
    assert.deepEqual(colorScale(["red"]), [
      [0, "red"],
      [1, "red"],
    ]);
    assert.deepEqual(colorScale(["red", "green", "blue"]), [
      [0, "red"],
      [0.5, "green"],
      [1, "blue"],
    ]);
  });

  it("of a scatter plot have escaped categories", () => {
    assert.deepEqual([axisValue("<b>&"), axisValue(3), axisValue(null)], ["&lt;b&gt;&amp;", 3, null]);
  });
});

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { eventsOn, labelledEvents, textsAt, visibleEvents } from "../../static/js/curves/annotations.js";
import { isAxisName } from "../../static/js/curves/axes.js";
import { batchesOf } from "../../static/js/curves/curve-loader.js";
import { CurveLine } from "../../static/js/curves/line.js";
import { titleOf, unitOf } from "../../static/js/curves/metric-units.js";
import { titleOfPanel } from "../../static/js/curves/panels/arranged-panel.js";
import { addPanel, movePanel, replacePanel } from "../../static/js/curves/panels/order.js";

describe("the order of panels", () => {
  const panels = ["A", "B", "c", "d", "e"].map((name) => ({ name, is_pinned: name < "a" }));
  const names = (list) => list.map(({ name }) => name).join("");

  it("changes by one place", () => {
    assert.equal(names(movePanel(panels, 3, 2)), "ABdce");
    assert.equal(names(movePanel(panels, 2, 3)), "ABdce");
    assert.equal(names(movePanel(panels, 0, 1)), "BAcde");
  });

  it("keeps pinned panels before the others", () => {
    assert.equal(names(movePanel(panels, 4, 0)), "ABecd");
    assert.equal(names(movePanel(panels, 0, 4)), "BAcde");
    assert.equal(names(addPanel(panels, { name: "F", is_pinned: true })), "ABFcde");
    assert.equal(names(addPanel(panels, { name: "f", is_pinned: false })), "ABcdef");
  });

  it("changes where a panel is pinned or unpinned, and nowhere else", () => {
    assert.equal(names(replacePanel(panels, 3, { name: "D", is_pinned: true })), "ABDce");
    assert.equal(names(replacePanel(panels, 0, { name: "a", is_pinned: false })), "Bcdea");
    assert.equal(names(replacePanel(panels, 3, { name: "x", is_pinned: false })), "ABcxe");
  });
});

describe("a panel's title", () => {
  it("is its own, or names the metrics and the metric on the axis", () => {
    assert.equal(titleOfPanel({ title: "Mine", metrics: ["a"], x: "step" }), "Mine");
    assert.equal(titleOfPanel({ title: "", metrics: ["a", "b"], x: "time" }), "a, b");
    assert.equal(titleOfPanel({ title: "", metrics: ["a", "b", "c"], x: "metrics.epoch" }), "a and 2 more over epoch");
  });
});

describe("the title of a y axis", () => {
  it("is the unit that the name ends with", () => {
    assert.deepEqual(
      ["system/cpu_utilization_percentage", "epoch_seconds", "samples_per_second", "gpu_0_power_usage_watts"].map(unitOf),
      ["%", "s", "samples/s", "W"],
    );
    assert.deepEqual(["loss", "metrics", "bias", "throughput"].map(unitOf), ["", "", "", ""]);
  });

  it("is otherwise the name, if all metrics have the same", () => {
    assert.equal(titleOf(["train/loss", "eval/loss"]), "loss");
    assert.equal(titleOf(["a_seconds", "b_seconds"]), "s");
    assert.equal(titleOf(["loss", "accuracy"]), "Value");
  });
});

describe("requests for curves", () => {
  it("are one for all charts with the same view, up to a number of metrics", () => {
    const chart = (axis, ...keys) => ({ axis, keys });
    const charts = [chart("step", "a"), chart("time", "a"), chart("step", "b", "c")];
    const keys = (batches) => batches.map((batch) => batch.charts.flatMap((each) => each.keys));
    assert.deepEqual(keys(batchesOf(charts, ({ axis }) => ({ axis }))), [["a", "b", "c"], ["a"]]);
    const many = Array.from({ length: 50 }, (_, index) => chart("step", String(index)));
    assert.deepEqual(
      batchesOf(many, ({ axis }) => ({ axis })).map((batch) => batch.charts.length),
      [24, 24, 2],
    );
  });
});

describe("events", () => {
  const answer = {
    run: "a",
    number: 7,
    start: 100,
    annotations: [
      { kind: "state", at: 110, until: null, is_open: false, step: null, label: "Running", text: "Running", tone: "running" },
      { kind: "attempt", at: 150, until: null, is_open: false, step: 40, label: "Attempt 2", text: "Again", tone: "preparing" },
      { kind: "alert", at: 120, until: null, is_open: true, step: null, label: "Hot", text: "GPU 0 is hot", tone: "failed" },
    ],
  };
  const view = { from: 0, to: 100, width: 566, isLog: false };

  it("stand at their time, since the start of their run, or at a step that is known", () => {
    assert.deepEqual(eventsOn("time", [answer]).map(({ from, to }) => [from, to]), [[110, null], [150, null], [120, Infinity]]);
    assert.deepEqual(eventsOn("relative", [answer]).map(({ from }) => from), [10, 50, 20]);
    assert.deepEqual(eventsOn("step", [answer]).map(({ from, label }) => [from, label]), [[40, "Attempt 2"]]);
    assert.deepEqual(eventsOn("metrics.epoch", [answer]), []);
  });

  it("name their run if there are several", () => {
    const labels = eventsOn("step", [answer, { ...answer, number: 8 }]).map(({ label }) => label);
    assert.deepEqual(labels, ["7: Attempt 2", "8: Attempt 2"]);
  });

  it("end with the view, and are told near their place", () => {
    const events = visibleEvents(eventsOn("relative", [answer]), view);
    assert.deepEqual(events.map(({ from, to }) => [from, to]), [[10, null], [20, 100], [50, null]]);
    assert.deepEqual(textsAt(events, 11, view), ["Running"]);
    assert.deepEqual(textsAt(events, 50, view), ["GPU 0 is hot", "Again"]);
    assert.deepEqual(textsAt(events, 15, view), []);
    assert.deepEqual(visibleEvents(events, { ...view, to: 5 }), []);
  });

  it("have labels that do not cover each other", () => {
    const at = (from, label) => ({ from, to: null, label });
    const labels = labelledEvents([at(0, "Begin"), at(3, "Running"), at(4, "Alert"), at(30, "Again"), at(98, "End")], view);
    assert.deepEqual(labels.map(({ label }) => label), ["Running", "Again"]);
  });
});

describe("a line over another metric", () => {
  const line = new CurveLine({ key: "loss", x: [1, 3, 2], y: [9, 8, 7] }, "a");

  it("may go back and forth", () => {
    assert.deepEqual(line.xEnds, [1, 3]);
    assert.equal(line.valueAt(2.1, { from: 1, to: 3 }, 0).value, 7);
    assert.equal(line.valueAt(3, { from: 1, to: 3 }, 0).value, 8);
  });

  it("has an axis that names the metric", () => {
    assert.deepEqual(["step", "metrics.epoch", "metrics.", "epoch", "constructor"].map(isAxisName), [
      true,
      true,
      false,
      false,
      false,
    ]);
  });
});

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { describe, it } from "node:test";

import { HOST, Series, fetchJson, seriesFromAnswer } from "../../static/js/charts/series.js";

function answer(times, metrics) {
  const series = Object.fromEntries(Object.entries(metrics).map(([key, mean]) => [key, { mean, max: [...mean] }]));
  return { node: "alpha", step_s: 10, times, host: {}, gpus: [{ uuid: "GPU-a", index: 0, name: "H200", series }] };
}

const power = (series) => series.row("GPU-a", "power_w");
const METRICS = { host: new Set(["cpu_pct"]), gpu: new Set(["power_w"]) };

describe("a series", () => {
  it("keeps unknown values, and drops the newest times without any", () => {
    const series = new Series(answer([0, 10, 20, 30], { power_w: [1, null, 3, null] }), 10);
    assert.deepEqual(series.times, [0, 10, 20]);
    assert.deepEqual(power(series).mean, [1, null, 3]);
  });

  it("may be empty", () => {
    const series = new Series(answer([], {}), 10);
    assert.deepEqual([series.times, series.has("GPU-a", "power_w"), series.nearestIndex(5)], [[], false, -1]);
    const unknown = new Series(answer([0, 10], { power_w: [null, null] }), 10);
    assert.deepEqual([unknown.times, unknown.has("GPU-a", "power_w")], [[], false]);
  });

  it("finds the nearest time within one and a half steps", () => {
    const series = new Series(answer([0, 10, 20], { power_w: [1, 2, 3] }), 10);
    assert.deepEqual(
      [-20, 4, 6, 22, 90].map((at) => series.nearestIndex(at)),
      [-1, 0, 1, 2, -1],
    );
  });

  it("drops what has left the axis", () => {
    const series = new Series(answer([0, 10, 20, 30], { power_w: [1, 2, 3, 4] }), 10);
    series.dropBefore(25);
    assert.deepEqual([series.times, power(series).max], [[30], [4]]);
  });

  it("of an answer about several nodes are several", () => {
    const nodes = [answer([0], { power_w: [1] }), { ...answer([0], { power_w: [2] }), node: "beta" }];
    assert.deepEqual(
      seriesFromAnswer({ nodes, step_s: 10 }).map(({ node }) => node),
      ["alpha", "beta"],
    );
    assert.equal(seriesFromAnswer(nodes[0]).length, 1);
  });
});

describe("live samples", () => {
  const gpuMessage = (start, values) => ({
    start,
    step_s: 1,
    gpus: {
      subjects: ["GPU-a", "GPU-unknown"],
      metrics: ["power_w", "fan_pct"],
      values: values.map((value) => [
        [value, 1],
        [9, 9],
      ]),
    },
  });

  it("continue where the history ends, in bins with their mean and maximum", () => {
    const series = new Series(answer([0, 10], { power_w: [1, 2] }), 10);
    series.append(gpuMessage(8, [7, 7, 7, 7, 7, 7, 7, 7]), 2, METRICS); // the history reaches to 20
    series.append(gpuMessage(20, [10, 30, 50, null, 70]), 2, METRICS);
    assert.deepEqual(series.times, [0, 10, 20, 22, 24]);
    assert.deepEqual(power(series).mean, [1, 2, 20, 50, 70]);
    assert.deepEqual(power(series).max, [1, 2, 30, 50, 70]);
  });

  it("are accepted of the metrics and GPUs of the page only", () => {
    const series = new Series(answer([0, 10], { power_w: [1, 2] }), 10);
    series.append(gpuMessage(20, [10]), 1, METRICS);
    assert.equal(series.row("GPU-a", "fan_pct"), undefined);
    assert.equal(series.rows.has("GPU-unknown"), false);
  });

  it("leave a gap where there were none", () => {
    const series = new Series(answer([0, 10], { power_w: [1, 2] }), 10);
    for (const start of [20, 21, 60]) {
      series.append({ start, step_s: 1, host: { metrics: ["cpu_pct"], values: [[5]] } }, 1, METRICS);
    }
    assert.deepEqual(series.times, [0, 10, 20, 21, 22, 60]);
    assert.deepEqual(series.row(HOST, "cpu_pct").mean, [null, null, 5, 5, null, 5]);
  });

  it("begin a series that has no history", () => {
    const series = new Series(answer([], {}), 10);
    series.append(gpuMessage(20, [10, 20]), 1, METRICS);
    assert.deepEqual(
      [series.times, power(series).mean],
      [
        [20, 21],
        [10, 20],
      ],
    );
  });
});

describe("fetching JSON", () => {
  async function serve(respond, use) {
    const server = createServer(respond);
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    // A browser resolves addresses against that of the page.
    globalThis.location = { href: `http://127.0.0.1:${server.address().port}/page` };
    try {
      await use();
    } finally {
      delete globalThis.location;
      server.closeAllConnections();
      server.close();
    }
  }

  it("adds the query, with lists as repeated parameters", async () => {
    const echo = (request, response) => response.end(JSON.stringify(request.url));
    await serve(echo, async () => {
      const query = { key: ["a", "b"], from: null, to: undefined, axis: "step", points: 0 };
      assert.equal(await fetchJson("/series/?all=1", query), "/series/?all=1&key=a&key=b&axis=step&points=0");
    });
  });

  it("throws the sentence of the hub, or one of its own", async () => {
    const refuse = (_, response) => response.writeHead(400).end(JSON.stringify({ detail: "metrics: unknown" }));
    await serve(refuse, () => assert.rejects(fetchJson("/series/", {}), { message: "metrics: unknown" }));
    const crash = (_, response) => response.writeHead(502).end("<html>");
    await serve(crash, () =>
      assert.rejects(fetchJson("/series/", {}), { message: "The hub answered 502. Reload the page." }),
    );
  });
});

// What the log viewer fetches from the hub, here a real HTTP server.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, beforeEach, describe, it } from "node:test";

import { LogFeed, decodeBase64 } from "../../static/js/log/log-feed.js";
import { LogLines } from "../../static/js/log/log-lines.js";
import { LogSearch } from "../../static/js/log/log-search.js";

let server, url, respond, queries;

before(async () => {
  server = createServer((request, response) => {
    const query = new URL(request.url, url).searchParams;
    queries.push(query);
    respond(query, response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${server.address().port}/`;
});

beforeEach(() => (queries = []));

after(() => {
  server.closeAllConnections();
  server.close();
});

const TEXT = "zero one two three four ";
const message = (from, to) => ({ offset: from, size: to - from, data: btoa(TEXT.slice(from, to)) });

function serveLog(text, { size = text.length, isComplete = true } = {}) {
  respond = (query, response) => {
    response.writeHead(200, { "X-Log-Size": size, "X-Log-Complete": String(isComplete) });
    response.end(text.slice(Number(query.get("offset"))));
  };
}

/** A feed, and a promise of the next state that it reports. */
function makeFeed(lines = new LogLines(), options = {}) {
  const waiting = [];
  const states = [];
  const onState = (state) => {
    states.push(state);
    waiting.splice(0).forEach((resolve) => resolve(state));
  };
  const feed = new LogFeed({ url: `${url}log`, attempt: 3, lines, onBytes() {}, onState, ...options });
  return { feed, lines, states, nextState: () => new Promise((resolve) => waiting.push(resolve)) };
}

describe("the feed of a log", () => {
  it("fetches all of it", async () => {
    serveLog(TEXT);
    const { feed, lines } = makeFeed();
    await feed.fetch();
    feed.stop();
    assert.equal(lines.plain(0), TEXT);
    assert.deepEqual(
      queries.map((query) => [query.get("offset"), query.get("attempt")]),
      [["0", "3"]],
    );
  });

  it("appends what follows, drops what it has and fetches what is missing", async () => {
    serveLog(TEXT);
    const { feed, lines, nextState } = makeFeed();
    feed.receive(message(0, 5));
    feed.receive(message(0, 5));
    feed.receive(message(3, 9));
    assert.equal(lines.plain(0), "zero one ");
    assert.deepEqual(queries, []);
    const state = nextState();
    feed.receive(message(13, 19));
    assert.deepEqual(await state, { size: 24, complete: true, error: "" });
    feed.stop();
    assert.equal(lines.plain(0), TEXT);
    assert.deepEqual(
      queries.map((query) => query.get("offset")),
      ["9"],
    );
  });

  it("gives up a request that a server holds, before its answer or in the middle, and sends it again", async () => {
    respond = (query, response) => {
      if (queries.length === 1) return;
      response.writeHead(200, { "X-Log-Size": TEXT.length, "X-Log-Complete": "true" });
      if (queries.length === 2) response.write(TEXT.slice(0, 5));
      else response.end(TEXT.slice(Number(query.get("offset"))));
    };
    const { feed, lines, nextState } = makeFeed(new LogLines(), { stalledMs: 100 });
    const errors = [];
    feed.fetch();
    do errors.push((await nextState()).error);
    while (errors.at(-1));
    assert.deepEqual(errors, [...Array(2).fill("The log could not be fetched: no answer for 0.1 s. Trying again."), ""]);
    feed.stop();
    assert.equal(lines.plain(0), TEXT);
    assert.deepEqual(
      queries.map((query) => query.get("offset")),
      ["0", "0", "5"],
    );
  });

  it("takes a log that does not exist yet as empty", async () => {
    respond = (_, response) => response.writeHead(404).end();
    const { feed, lines, states } = makeFeed();
    await feed.fetch();
    feed.stop();
    assert.equal(lines.count, 0);
    assert.deepEqual(states, [{ size: 0, complete: false, error: "" }]);
  });

  it("does not ask forever for bytes that the hub does not send", async () => {
    serveLog("", { size: 100, isComplete: false });
    const { feed, states } = makeFeed();
    await feed.fetch();
    feed.stop();
    assert.equal(queries.length, 1);
    assert.deepEqual(states, [{ size: 0, complete: false, error: "" }]);
  });

  it("reports a failure and tries again", async () => {
    const { feed, lines, states, nextState } = makeFeed();
    respond = (_, response) => response.writeHead(503).end();
    await feed.fetch();
    assert.equal(states[0].error, "The log could not be fetched: 503 Service Unavailable. Trying again.");
    respond = (_, response) => response.writeHead(503).end('{"detail": "The store is away."}');
    assert.equal((await nextState()).error, "The log could not be fetched: The store is away. Trying again.");
    serveLog(TEXT);
    assert.equal((await nextState()).error, "");
    feed.stop();
    assert.equal(lines.plain(0), TEXT);
  });

  it("reports nothing after it was stopped", async () => {
    // Only then: a request that is under way would otherwise arrive in the next test.
    const hasArrived = new Promise((resolve) => (respond = resolve));
    const { feed, states } = makeFeed();
    const fetching = feed.fetch();
    await hasArrived;
    feed.stop();
    await fetching;
    assert.deepEqual(states, []);
  });

  it("decodes bytes that are no text", () => {
    assert.deepEqual(decodeBase64("AP+A"), Uint8Array.from([0, 255, 128]));
    assert.deepEqual(decodeBase64(""), new Uint8Array(0));
  });
});

describe("the search in all logs", () => {
  const page = (results, next, searched) => ({ results, next, searched_bytes: searched, total_bytes: 10, logs: 2 });

  function servePages(...pages) {
    respond = (_, response) => response.end(JSON.stringify(pages[queries.length - 1]));
  }

  async function search(query = { q: "x" }) {
    let found;
    const isDone = new Promise((resolve) => {
      found = new LogSearch({ url: `${url}search`, onChange: () => found?.state !== "busy" && found && resolve() });
    });
    found.start(query);
    await isDone;
    return found;
  }

  it("continues page by page, and lists a line once", async () => {
    servePages(
      page(
        [
          { log: "a", offset: 0 },
          { log: "b", offset: 0 },
        ],
        "one",
        5,
      ),
      page(
        [
          { log: "b", offset: 0 },
          { log: "b", offset: 9 },
        ],
        null,
        10,
      ),
    );
    const { hits, state, share, logs } = await search({ q: "x y", regex: 1 });
    assert.deepEqual(
      queries.map((query) => [query.get("q"), query.get("regex"), query.get("cursor")]),
      [
        ["x y", "1", ""],
        ["x y", "1", "one"],
      ],
    );
    assert.deepEqual(
      hits.map(({ log, offset }) => `${log}${offset}`),
      ["a0", "b0", "b9"],
    );
    assert.deepEqual([state, share, logs], ["done", 1, 2]);
  });

  it("pauses when there are too many hits, and can be resumed", async () => {
    const many = Array.from({ length: 2000 }, (_, offset) => ({ log: "a", offset }));
    servePages(page(many, "more", 5), page([{ log: "b", offset: 1 }], null, 10));
    const found = await search();
    assert.deepEqual([found.state, found.hits.length, found.share], ["full", 2000, 0.5]);
    await found.resume();
    assert.deepEqual([found.state, found.hits.length], ["done", 2001]);
  });

  it("fails with the hub's own sentence", async () => {
    respond = (_, response) => response.writeHead(400).end(JSON.stringify({ detail: "q: is empty" }));
    const { state, error } = await search({ q: "" });
    assert.deepEqual([state, error], ["failed", "q: is empty"]);
  });

  it("can be stopped", async () => {
    respond = () => {};
    const found = new LogSearch({ url: `${url}search`, onChange() {} });
    found.start({ q: "x" });
    found.stop();
    assert.deepEqual([found.state, found.hits], ["stopped", []]);
  });
});

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { described, folderProblem } from "../../static/js/uploads/folder.js";
import { RequestFailed } from "../../static/js/uploads/hub-requests.js";
import { Speed } from "../../static/js/uploads/speed.js";
import { PIECE_BYTES, State, Upload } from "../../static/js/uploads/upload.js";

const MiB = 1024 * 1024;
const file = (path, size = 10) => ({ path, size, modified_at: 1.5, file: null });

/** A hub that remembers what it got. `failures`: path -> errors that it throws first. */
class PlayedHub {
  constructor({ stored = {}, refused = [], failures = {} } = {}) {
    Object.assign(this, { stored, refused, failures, sent: [], finished: null });
  }

  async begin() {
    return 3;
  }

  async compare(files) {
    const missing = files
      .filter(({ path, size }) => (this.stored[path] ?? -1) < size && !this.refused.includes(path))
      .map(({ path }) => ({ path, offset: this.stored[path] ?? 0 }));
    const refused = files.filter(({ path }) => this.refused.includes(path));
    return { missing, refused: refused.map(({ path }) => ({ path, reason: "rename it" })) };
  }

  async put({ path }, start, end) {
    const failure = this.failures[path]?.shift();
    if (failure) throw failure;
    this.sent.push([path, start, end]);
    this.stored[path] = end;
  }

  async finish(count) {
    this.finished = count;
  }
}

const uploadOf = (files, hub) => new Upload(files, hub, () => {}, async () => {});

describe("an upload", () => {
  it("sends what is missing, large files in pieces from where they were, and makes the version", async () => {
    const large = file("large", 2 * PIECE_BYTES + 5);
    const hub = new PlayedHub({ stored: { "a.bin": 10, large: PIECE_BYTES } });
    const upload = uploadOf([file("a.bin"), file("b.bin"), file("empty", 0), large], hub);
    await upload.run();
    assert.deepEqual(hub.sent.filter(([path]) => path === "large"), [
      ["large", PIECE_BYTES, 2 * PIECE_BYTES],
      ["large", 2 * PIECE_BYTES, 2 * PIECE_BYTES + 5],
    ]);
    assert.equal(hub.sent.length, 4);
    assert.equal(hub.finished, 4);
    assert.deepEqual([upload.state, upload.doneFiles, upload.doneBytes], [State.FINISHED, 4, upload.totalBytes]);
    assert.equal(upload.sentBytes, upload.totalBytes - 10 - PIECE_BYTES);
  });

  it("asks again when the hub does not answer, then is interrupted, and goes on", async () => {
    const lost = () => new RequestFailed("The hub cannot be reached.", 0);
    const hub = new PlayedHub({ failures: { "a.bin": [lost()], "b.bin": Array.from({ length: 5 }, lost) } });
    const upload = uploadOf([file("a.bin"), file("b.bin")], hub);
    await upload.run();
    assert.deepEqual([upload.state, upload.problem], [State.INTERRUPTED, "The hub cannot be reached."]);
    await upload.run();
    assert.deepEqual([upload.state, upload.doneBytes, hub.finished], [State.FINISHED, 20, 2]);
  });

  it("waits for a choice when files are refused", async () => {
    const changed = Object.assign(new Error("changed"), { name: "NotReadableError" });
    const hub = new PlayedHub({ refused: ["bad"], failures: { "c.bin": [changed] } });
    const upload = uploadOf([file("a.bin"), file("bad"), file("c.bin")], hub);
    await upload.run();
    assert.deepEqual([upload.isComplete, hub.finished], [true, null]);
    assert.equal(upload.refused.get("bad"), "rename it");
    assert.match(upload.refused.get("c.bin"), /changed or removed/);
    await upload.finish();
    assert.equal(hub.finished, 1);
  });

  it("stops when it is paused, and does not count twice", async () => {
    const hub = new PlayedHub();
    const files = Array.from({ length: 50 }, (_, number) => file(`${number}.bin`));
    const upload = uploadOf(files, hub);
    const put = hub.put.bind(hub);
    let wasPaused = false;
    hub.put = async (...details) => {
      await put(...details);
      if (hub.sent.length >= 10 && upload.state === State.SENDING && !wasPaused) {
        wasPaused = true;
        upload.pause();
      }
    };
    await upload.run();
    assert.equal(upload.state, State.PAUSED);
    assert.ok(hub.sent.length < 50);
    await upload.run();
    assert.deepEqual([upload.state, upload.doneFiles, upload.doneBytes], [State.FINISHED, 50, 500]);
  });
});

describe("a folder", () => {
  it("is named in the order of the hub, without what systems add", () => {
    const files = ["b", "a!/c", "a/z", ".DS_Store", "a/Thumbs.db"].map((path) => ({
      path,
      file: { size: 1, lastModified: 1500 },
    }));
    const names = described(files).map(({ path, modified_at }) => [path, modified_at]);
    assert.deepEqual(names, [
      ["a/z", 1.5],
      ["a!/c", 1.5],
      ["b", 1.5],
    ]);
  });

  it("that is too large is refused with the numbers", () => {
    const limits = { files: 2, bytes: 25 };
    assert.equal(folderProblem([file("a"), file("b")], limits, String), "");
    assert.match(folderProblem([], limits, String), /no files/);
    assert.match(folderProblem([file("a"), file("b"), file("c")], limits, String), /3 files, and .* at most 2/);
    assert.match(folderProblem([file("a", 26)], limits, String), /26, and .* at most 25/);
  });
});

describe("the speed", () => {
  it("is that of the last seconds, and the slower of bytes and files tells the time left", () => {
    const speed = new Speed();
    speed.add(0, 0, 0);
    assert.equal(speed.rate, null);
    for (let second = 1; second <= 30; second += 1) speed.add(second * 1000, second * MiB, second * 10);
    assert.deepEqual(speed.rate, { bytes: MiB, files: 10 });
    assert.equal(speed.secondsLeft(5 * MiB, 10), 5);
    assert.equal(speed.secondsLeft(5 * MiB, 1000), 100);
  });
});

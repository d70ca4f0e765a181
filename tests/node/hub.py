"""A hub that speaks the node's contract over real sockets and remembers what it was told. No Django, no
database."""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgpack

from tests.node.checkpoints.at_hub import CheckpointsAtHub
from tests.node.outputs.at_hub import StoredOutputsAtHub
from trainhub_launch.machine import Heartbeat
from trainhub_launch.order import NodeOrder
from trainhub_launch.report import Ack, AttemptFact, Report, StopOrder
from trainhub_launch.telemetry import Block, GpuEvent

TOKEN = "node-token-of-the-tests"
Key = tuple[str, int]
# How many times slower than usual this machine is: an emulated one (.ci/virtual-machine) sets it.
SLOWNESS = float(os.environ.get("TRAINHUB_TEST_SLOWNESS", "1"))
# In a variable of an order: the hub puts one of the ports there that the claim offers.
OFFERED_PORT = "an offered port"
DRIVER_LOG = "70_driver_log.txt"


class FakeHub:
    """`available` False: every request is answered 503, as by a proxy whose hub restarts. `finals`: the
    second answer to the claim of an order without leave to start; until it is here, a node that is ready is
    told to ask later. `samples`, `buckets`, `events`: all that ever came, also again. `refuses`: whether a
    report is answered 400."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        self.changed = threading.Condition()
        self.available = True
        self.auto_settle = True
        self.config: dict[str, Any] | None = None
        self.orders: dict[Key, NodeOrder] = {}
        self.finals: dict[Key, NodeOrder] = {}
        self.daemons: dict[Key, tuple[str, ...]] = {}
        self.offered: set[Key] = set()
        self.nonces: dict[Key, str] = {}
        self.claims: list[dict[str, Any]] = []
        self.secrets: dict[str, str] = {}
        self.secret_requests: list[dict[str, Any]] = []
        self.refuses_secrets = False
        self.blobs: dict[str, bytes] = {}
        self.slow_snapshots: set[str] = set()
        self.parts: dict[str, bytearray] = defaultdict(bytearray)
        self.chunk_sizes: list[int] = []
        self.logs: dict[tuple[str, int, str], bytearray] = defaultdict(bytearray)
        self.facts: dict[Key, AttemptFact] = {}
        self.history: dict[Key, list[AttemptFact]] = defaultdict(list)
        self.stops: dict[Key, StopOrder] = {}
        self.settled: set[Key] = set()
        self.reports = 0
        self.refused = 0
        self.heartbeats = 0
        self.heartbeat: Heartbeat | None = None
        self.interval_s = 0.2
        self.is_watched = False
        self.confirms = True
        self.refuses: Callable[[Report], bool] = lambda report: False
        self.samples: list[Block] = []
        self.buckets: list[Block] = []
        self.events: list[GpuEvent] = []
        self.checkpoints = CheckpointsAtHub()
        self.stored_outputs = StoredOutputsAtHub()
        self.wanted: dict[Key, tuple[tuple[int, str], ...]] = {}
        self._server = _Server((address, 0), _Handler)
        self._server.hub = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        address, port = self._server.server_address[:2]
        return f"http://{address!s}:{port}"

    @contextmanager
    def serving(self) -> Iterator[FakeHub]:
        self._thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()

    def store(self, data: bytes) -> str:
        sha256 = hashlib.sha256(data).hexdigest()
        self.blobs[sha256] = data
        return sha256

    def give(self, order: NodeOrder) -> Key:
        """Offer `order` with the next report's answer, as after a lost wake-up."""
        key = order.run, order.attempt
        self.orders[key] = order
        self.offered.add(key)
        return key

    def wait(self, met: Callable[[], Any], timeout_s: float = 20.0) -> None:
        """Until `met()`; it is asked after everything that the hub is told."""
        with self.changed:
            if not self.changed.wait_for(met, timeout_s * SLOWNESS):
                raise AssertionError(f"not within {timeout_s} s; last told: {list(self.facts.values())}")

    def wait_done(self, key: Key, timeout_s: float = 20.0) -> AttemptFact:
        """Until the attempt is over and every byte of its logs is here."""
        self.wait(
            lambda: key in self.facts and self.facts[key].phase == "done" and self.complete(key), timeout_s
        )
        return self.facts[key]

    def wait_phase(self, key: Key, phase: str, timeout_s: float = 20.0) -> AttemptFact:
        self.wait(lambda: key in self.facts and phase in self.facts[key].phase_at, timeout_s)
        return self.facts[key]

    def wait_log(self, key: Key, text: bytes, name: str = DRIVER_LOG, timeout_s: float = 20.0) -> None:
        self.wait(lambda: text in self.logs[*key, name], timeout_s)

    def log(self, key: Key, name: str = DRIVER_LOG) -> bytes:
        return bytes(self.logs[*key, name])

    def output(self, key: Key, path: str) -> bytes:
        result = next(file for file in self.facts[key].outputs if file.path == path)
        assert len(self.blobs[result.sha256]) == result.size
        return self.blobs[result.sha256]

    def complete(self, key: Key) -> bool:
        return all(len(self.logs[*key, name]) == size for name, size in self.facts[key].logs.items())

    def claim(self, requests: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        key = requests["run"], requests["attempt"]
        self.claims.append(requests)
        if key not in self.orders or self.nonces.setdefault(key, requests["nonce"]) != requests["nonce"]:
            return 409, {"title": "Conflict", "status": 409, "detail": "It is not placed on this node."}
        self.offered.discard(key)
        if self.orders[key].go or not self.is_ready(key):
            text = json.dumps(self.orders[key].to_json())
            return 200, json.loads(text.replace(OFFERED_PORT, str(requests["ports"][0])))
        if key not in self.finals:
            return 503, {"title": "Later", "status": 503, "detail": "Not every node of the run is ready."}
        return 200, self.finals[key].to_json()

    def give_secrets(self, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.secret_requests.append(request)
        key = request["run"], request["attempt"]
        if self.refuses_secrets or self.nonces.get(key) != request["nonce"]:
            return 409, {"title": "Refused", "status": 409, "detail": "There is no secret api any more."}
        return 200, {"values": self.secrets, "masked": list(self.secrets.values())}

    def is_ready(self, key: Key) -> bool:
        return key in self.facts and self.facts[key].phase == "ready"

    def take(self, report: Report) -> Ack:
        self.reports += 1
        self.heartbeat = report.heartbeat or self.heartbeat
        self.heartbeats += report.heartbeat is not None
        self.samples += report.samples
        self.buckets += report.buckets
        self.events += report.events
        offsets: dict[tuple[str, int, str], int] = {}
        for chunk in report.logs:
            name = (chunk.run, chunk.attempt, chunk.name)
            reserved = self.logs[name]
            if chunk.offset <= len(reserved):
                reserved += chunk.data[len(reserved) - chunk.offset :]
            offsets[name] = len(reserved)
        for fact in report.attempts:
            key = fact.run, fact.attempt
            self.facts[key] = fact
            self.history[key].append(fact)
            if self.auto_settle and fact.phase == "done" and self.complete(key):
                self.settled.add(key)
        living = set(report.living)
        return Ack(
            offsets=tuple((*name, offset) for name, offset in offsets.items()),
            start=(*(self.offered - living), *(key for key in self.finals if self.is_ready(key))),
            daemons=tuple((*key, argv) for key, argv in self.daemons.items() if self.is_ready(key)),
            stop=tuple(stop for key, stop in self.stops.items() if key in living),
            settled=tuple(self.settled & living),
            interval_s=self.interval_s,
            is_watched=self.is_watched,
            checkpoints=tuple((*key, *item) for key, items in self.wanted.items() for item in items),
            buckets_until=max((block.end for block in report.buckets), default=0) if self.confirms else 0,
            events_until=max((event.serial for event in report.events), default=0) if self.confirms else 0,
        )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    hub: FakeHub


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def hub(self) -> FakeHub:
        assert isinstance(self.server, _Server)
        return self.server.hub

    def log_message(self, format: str, *args: object) -> None: ...

    def do_POST(self) -> None:
        body = self._body()
        if not self._welcome():
            return
        handlers = {"/api/v1/node/claim/": self.hub.claim, "/api/v1/node/secrets/": self.hub.give_secrets}
        with self.hub.changed:
            if handler := handlers.get(self.path):
                status, answer = handler(json.loads(body))
                self._answer(status, json.dumps(answer).encode())
            elif self.path.startswith("/api/v1/node/checkpoints/"):
                self._answer(*self.hub.checkpoints.answer(self.path, body))
            elif self.path.startswith("/api/v1/node/stored-outputs/"):
                self._answer(*self.hub.stored_outputs.answer(self.path, body))
            else:
                self._report(Report.from_wire(msgpack.unpackb(body)))
            self.hub.changed.notify_all()

    def _report(self, report: Report) -> None:
        if self.hub.refuses(report):
            self.hub.refused += 1
            self._answer(400, b'{"title": "Bad request", "detail": "The hub of this test does not take it."}')
        else:
            self._answer(200, msgpack.packb(self.hub.take(report).to_wire()))

    def do_GET(self) -> None:
        if not self._welcome():
            return
        if self.path == "/api/v1/node/config/":
            self._answer(200 if self.hub.config else 503, json.dumps(self.hub.config).encode())
            return
        sha256 = self.path.rpartition("/")[2]
        if sha256 in self.hub.slow_snapshots:
            self._answer(503, b"")
            return
        data = self.hub.blobs.get(sha256)
        start = int(re.sub(r"bytes=(\d+)-", r"\1", self.headers.get("Range", "bytes=0-")))
        if data is None:
            self._answer(404, b'{"title": "Not found", "detail": "There is no such snapshot."}')
        else:
            self._answer(206 if start else 200, data[start:])

    def do_HEAD(self) -> None:
        if self._welcome():
            sha256 = self.path.rpartition("/")[2]
            complete = sha256 in self.hub.blobs
            reserved = len(self.hub.blobs[sha256] if complete else self.hub.parts[sha256])
            self._answer(200, b"", {"Upload-Offset": str(reserved), "Upload-Complete": str(complete).lower()})

    def do_PUT(self) -> None:
        body = self._body()
        if not self._welcome():
            return
        sha256 = self.path.rpartition("/")[2]
        span = re.fullmatch(r"bytes (?:(\d+)-\d+|\*)/(\d+)", self.headers["Content-Range"])
        assert span is not None
        part = self.hub.parts[sha256]
        if int(span[1] or 0) != len(part):
            self._answer(409, b"", {"Upload-Offset": str(len(part))})
            return
        part += body
        self.hub.chunk_sizes.append(len(body))
        if len(part) == int(span[2]):
            assert self.hub.store(bytes(part)) == sha256
        self._answer(204, b"", {"Upload-Offset": str(len(part))})

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _welcome(self) -> bool:
        if not self.hub.available:
            with self.hub.changed:
                self.hub.refused += 1
                self.hub.changed.notify_all()
            self._answer(503, b"")
            return False
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._answer(401, b"")
            return False
        return True

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

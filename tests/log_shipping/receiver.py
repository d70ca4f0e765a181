"""A log system for tests: it speaks OTLP and Loki's push API, and is as strict as the documents of both."""

from __future__ import annotations

import gzip
import json
import re
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)

OTLP_PATH, LOKI_PATH = "/v1/logs", "/loki/api/v1/push"
MAX_LABELS = 15
MAX_LINE_BYTES = 64 * 1024
MAX_BODY_BYTES = 4 * 2**20
# How much older than the newest entry of its stream an entry may be.
MAX_AGE_NS = 3600 * 10**9
LABEL = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\Z")


@dataclass(frozen=True)
class Entry:
    """A line that arrived. `labels`: of Loki's stream, or the resource's attributes; `about`: structured
    metadata."""

    time_ns: int
    text: str
    labels: dict[str, Any]
    about: dict[str, Any] = field(default_factory=dict)
    trace_id: str = ""


class BadPush(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


Answer = tuple[int, dict[str, str], bytes]


class LogReceiver(ThreadingHTTPServer):
    """`answers`: given instead of taking anything, the first one first. `check`: raises BadPush for an entry
    that it does not want. `token`: required in Authorization if set."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.entries: list[Entry] = []
        self.refusals: list[str] = []
        self.requests = 0
        self.answers: list[Answer] = []
        self.token = ""
        self.check: Callable[[Entry], None] = lambda _: None
        self.newest_ns: dict[str, int] = {}
        self.lock = threading.Lock()
        self._keys: set[tuple[str, int, str]] = set()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that is killed closes its connection."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def texts(self) -> list[str]:
        return [entry.text for entry in self.entries]

    def take_otlp(self, body: bytes) -> None:
        """All or nothing, as a collector answers a request with errors."""
        taken = list(_otlp_entries(body))
        for entry in taken:
            self.check(entry)
        self.entries += taken

    def take_loki(self, body: bytes) -> None:
        """Takes the good entries and refuses the others, as Loki does; equal ones are taken once."""
        problems: list[BadPush] = []
        for entry in _loki_entries(body):
            key = json.dumps(entry.labels, sort_keys=True)
            try:
                _check_age(entry, self.newest_ns.get(key, 0))
                self.check(entry)
            except BadPush as error:
                problems.append(error)
                continue
            self.newest_ns[key] = max(self.newest_ns.get(key, 0), entry.time_ns)
            if (key, entry.time_ns, entry.text) not in self._keys:
                self._keys.add((key, entry.time_ns, entry.text))
                self.entries.append(entry)
        if problems:
            raise problems[0]


class _Handler(BaseHTTPRequestHandler):
    server: LogReceiver
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        server = self.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with server.lock:
            server.requests += 1
            if server.answers:
                self._answer(*server.answers.pop(0))
                return
            try:
                self._take(body)
            except BadPush as error:
                server.refusals.append(str(error))
                self._answer(error.status, {"Content-Type": "text/plain"}, f"{error}\n".encode())

    def _take(self, body: bytes) -> None:
        if self.server.token and self.headers["Authorization"] != f"Bearer {self.server.token}":
            raise BadPush(401, "no org id")
        if self.headers["Content-Encoding"] != "gzip":
            raise BadPush(400, "not compressed")
        plain = gzip.decompress(body)
        if len(plain) > MAX_BODY_BYTES:
            raise BadPush(413, "request body too large")
        if self.path == OTLP_PATH and self.headers["Content-Type"] == "application/x-protobuf":
            self.server.take_otlp(plain)
            answer = ExportLogsServiceResponse().SerializeToString()
            self._answer(200, {"Content-Type": "application/x-protobuf"}, answer)
        elif self.path == LOKI_PATH and self.headers["Content-Type"] == "application/json":
            self.server.take_loki(plain)
            self._answer(204, {}, b"")
        else:
            raise BadPush(404, "404 page not found")

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def listening(certificate: tuple[Path, Path] | None = None) -> Iterator[LogReceiver]:
    """`certificate`: chain and key, to speak TLS."""
    server = LogReceiver()
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _otlp_entries(body: bytes) -> Iterator[Entry]:
    for resource in ExportLogsServiceRequest.FromString(body).resource_logs:
        labels = {
            pair.key: getattr(pair.value, pair.value.WhichOneof("value") or "string_value")
            for pair in resource.resource.attributes
        }
        assert labels["service.name"]
        for scope in resource.scope_logs:
            for record in scope.log_records:
                assert len(record.trace_id) == 16
                assert any(record.trace_id)
                assert record.time_unix_nano
                yield Entry(
                    record.time_unix_nano, record.body.string_value, labels, {}, record.trace_id.hex()
                )


def _loki_entries(body: bytes) -> Iterator[Entry]:
    for stream in json.loads(body)["streams"]:
        labels, last_ns = stream["stream"], 0
        if not labels or len(labels) > MAX_LABELS:
            raise BadPush(400, f"entry for stream has {len(labels)} label names; limit {MAX_LABELS}")
        if not all(LABEL.match(name) and isinstance(value, str) for name, value in labels.items()):
            raise BadPush(400, "error parsing labels")
        for time_ns, text, about in stream["values"]:
            if not (isinstance(time_ns, str) and time_ns.isdigit()):
                raise BadPush(400, "timestamps are strings of nanoseconds")
            if int(time_ns) < last_ns:
                raise BadPush(400, "entries of a stream are not in order")
            if not all(isinstance(value, str) for value in about.values()):
                raise BadPush(400, "structured metadata has strings only")
            last_ns = int(time_ns)
            if len(text.encode()) > MAX_LINE_BYTES:
                raise BadPush(400, "Max entry size '65536' bytes exceeded")
            yield Entry(last_ns, text, labels, about, about.get("trace_id", ""))


def _check_age(entry: Entry, newest_ns: int) -> None:
    if entry.time_ns < newest_ns - MAX_AGE_NS:
        raise BadPush(400, "entry too far behind")

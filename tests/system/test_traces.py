"""The trace of a run, as a collector gets it by OTLP."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from jobs.traces.otlp import send_run_trace
from tests.jobs import builders
from tests.people import make_contributor, principal_of

pytestmark = pytest.mark.django_db
FAILED = 2


class Collector(HTTPServer):
    """Answers with `status`, and keeps what it got."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 200
        self.spans: list[Span] = []


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if self.server.status == 200:
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    self.server.spans += scope.spans
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def listening() -> Iterator[Collector]:
    server = Collector()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with listening() as server:
        address = f"http://127.0.0.1:{server.server_address[1]}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        yield server


def attributes(span: Span) -> dict[str, object]:
    return {
        pair.key: getattr(pair.value, pair.value.WhichOneof("value") or "string_value")
        for pair in span.attributes
    }


def test_has_the_states_the_claim_and_the_ranks_of_a_run_that_failed(collector: Collector) -> None:
    played, run = builders.running(principal_of(make_contributor()))
    played.finish(run, builders.ended(0, 3))
    send_run_trace(run.pk)
    whole, *inner = collector.spans
    assert {span.trace_id.hex() for span in collector.spans} == {run.pk}
    assert {span.parent_span_id for span in inner} == {whole.span_id}
    assert whole.name == f"run {run.number}"
    assert whole.status.code == FAILED
    assert attributes(whole)["enduser.id"] == "carl"
    names = [span.name for span in inner]
    assert names[:2] == ["Queued", "Provisioning"]
    assert {"Running", "placed → claimed by alpha", "rank 0 on alpha"} <= set(names)
    rank = next(span for span in inner if span.name == "rank 0 on alpha")
    assert attributes(rank)["process.exit.code"] == 3
    assert rank.status.message == "exit code 3"
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in collector.spans)
    assert all(whole.start_time_unix_nano <= span.start_time_unix_nano for span in inner[:2])


def test_a_collector_that_refuses_loses_it_and_the_log_says_so(
    collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    collector.status = 400
    played, run = builders.running(principal_of(make_contributor()))
    played.finish(run)
    send_run_trace(run.pk)
    assert not collector.spans
    assert f"The trace of run {run.number} could not be sent" in caplog.text


@pytest.mark.parametrize("is_wanted", [True, False])
def test_is_sent_once_a_run_is_over_where_it_is_wanted(
    settings: object, monkeypatch: pytest.MonkeyPatch, is_wanted: bool
) -> None:
    settings.SENDS_TRACES = is_wanted  # type: ignore[attr-defined]
    tasks: list[tuple[object, ...]] = []
    monkeypatch.setattr("jobs.task_messages.send_task_soon", lambda *sent: tasks.append(sent))
    played, run = builders.running(principal_of(make_contributor()))
    played.finish(run)
    assert (("jobs.tasks.send_trace", run.pk) in tasks) is is_wanted

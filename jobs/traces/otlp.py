"""Sends the trace of a run to a collector by OTLP. Loaded only where somebody has switched that on: the
library needs 20 MB of memory."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime

from django.conf import settings
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator
from opentelemetry.trace import Span, Status, StatusCode, set_span_in_context

from jobs.models import Run
from jobs.traces.run_spans import RunSpan, inner_spans, root_span

log = logging.getLogger(__name__)


class _RunIds(IdGenerator):
    """The id of a run, 32 hexadecimal digits, is that of its trace, too: who knows one finds the other."""

    def __init__(self, run_id: str) -> None:
        self._trace_id = int(run_id, 16)
        self._random = RandomIdGenerator()

    def generate_trace_id(self) -> int:
        return self._trace_id

    def generate_span_id(self) -> int:
        return self._random.generate_span_id()


def spans_of(run: Run) -> Sequence[ReadableSpan]:
    """Returns the trace of a run that is over; its first span is the whole run."""
    collected = InMemorySpanExporter()
    resource = Resource.create({"service.name": "trainhub", "service.version": settings.TRAINHUB_VERSION})
    provider = TracerProvider(resource=resource, id_generator=_RunIds(run.pk))
    provider.add_span_processor(SimpleSpanProcessor(collected))
    tracer = provider.get_tracer("trainhub.runs")
    whole = root_span(run)
    root = tracer.start_span(whole.name, start_time=_nanoseconds(whole.start), attributes=whole.attributes)
    for inner in inner_spans(run):
        span = tracer.start_span(
            inner.name,
            context=set_span_in_context(root),
            start_time=_nanoseconds(inner.start),
            attributes=inner.attributes,
        )
        _finish(span, inner)
    _finish(root, whole)
    *inners, last = collected.get_finished_spans()
    return [last, *inners]


def send_run_trace(run_id: str, exporter: SpanExporter | None = None) -> None:
    """Sends the trace of a run that is over. A collector that does not answer is tried again for some
    seconds, as the standard variables of OpenTelemetry say; then the log tells that this trace is lost."""
    run = Run.objects.select_related("workspace", "experiment", "created_by").filter(pk=run_id).first()
    if run is None:
        return
    exporter = exporter or OTLPSpanExporter()
    try:
        if exporter.export(spans_of(run)) is not SpanExportResult.SUCCESS:
            log.warning("The trace of %s could not be sent to the collector, and is lost", run)
    finally:
        exporter.shutdown()


def _finish(span: Span, described: RunSpan) -> None:
    if described.error:
        span.set_status(Status(StatusCode.ERROR, described.error))
    span.end(_nanoseconds(described.end))


def _nanoseconds(at: datetime) -> int:
    # In whole microseconds, which a floating point number of nanoseconds could not hold.
    return round(at.timestamp() * 1_000_000) * 1000

"""Sends a line of the hub's own, to show whether a log system takes lines."""

from __future__ import annotations

import time
import uuid

from jobs.log_shipping import targets
from jobs.log_shipping.line_reader import LogSource, SourceLine
from jobs.log_shipping.log_requests import LinesRefused, LogConnection, TargetUnavailable
from jobs.log_shipping.models import LogTarget

STREAM = "test"


class SampleLineLost(Exception):
    """The log system does not take lines; the message is a sentence that says why."""


def answer_request(target: LogTarget) -> None:
    """Sends the test line that somebody wants on the page of the target, and records the result."""
    try:
        send_sample_line(target, target.test_by)
        result = "The test line was accepted."
    except SampleLineLost as error:
        result = str(error)
    LogTarget.objects.filter(pk=target.pk).update(test_by="", test_result=result[: targets.MAX_TEXT])


def send_sample_line(target: LogTarget, person: str) -> str:
    """Sends a line with `person` in it, and returns its text. Raises SampleLineLost.

    It ends the pause of a target that has failed."""
    text = f"[TrainHub] A test by {person}: lines of runs arrive here."
    workspace = target.workspace.slug if target.workspace else "none"
    source = LogSource(
        workspace=workspace,
        experiment="none",
        run=uuid.uuid4().hex,
        number=0,
        attempt=0,
        log="test",
        stream=STREAM,
        node="",
        rank=None,
    )
    try:
        with LogConnection(targets.destination_of(target), targets.hub_name()) as connection:
            drops, reason = connection.send([SourceLine(source, time.time_ns(), text, 0)])
    except (TargetUnavailable, targets.TargetUnusable) as error:
        raise SampleLineLost(error.message) from error
    except LinesRefused as error:
        raise SampleLineLost(f"{error.message}.") from error
    if drops:
        raise SampleLineLost(f"The log system dropped the line: {reason or 'it does not say why'}.")
    targets.retry_now(target)
    return text

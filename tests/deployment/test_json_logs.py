"""`LOG_FORMAT=json` and `LOG_TO=stdout`: what a container's hub says can be collected by programs."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from tests.hub import Hub, eventually
from trainhub.logs.json_format import JsonFormatter
from trainhub.logs.line_format import MAX_MESSAGE

# What Celery itself prints in its signal handler.
OF_CELERY = ("", "worker: Warm shutdown (MainProcess)")


def formatted(message: str, *values: object, fails: bool = False) -> str:
    error = None
    if fails:
        try:
            raise ValueError("a cause\nof two lines")
        except ValueError:
            error = sys.exc_info()
    record = logging.LogRecord("django.request", logging.WARNING, "", 0, message, values, error)
    record.created = 1_700_000_000.25
    return JsonFormatter().format(record)


def test_a_record_is_one_object_of_one_line() -> None:
    line = formatted("path %s", "/a\n{}\u2028\x1b[31m", fails=True)
    assert "\n" not in line
    assert line.isascii()
    fields = json.loads(line)
    assert fields["time"] == "2023-11-14T22:13:20.250Z"
    assert (fields["level"], fields["logger"]) == ("WARNING", "django.request")
    assert fields["message"] == "path /a\n{}\u2028\x1b[31m"
    assert fields["exception"].endswith("ValueError: a cause\nof two lines")
    assert fields["process"] > 1


def test_a_long_message_is_shortened() -> None:
    assert len(json.loads(formatted("x" * 100_000))["message"]) < MAX_MESSAGE + 100


@pytest.mark.slow
def test_all_that_a_hub_says_is_json_on_its_output(own_hub: Hub) -> None:
    own_hub.settings |= {"LOG_FORMAT": "json", "LOG_TO": "stdout", "LOCAL_NODE": "0", "LOG_LEVEL": "DEBUG"}
    own_hub.start()
    with own_hub.client("") as client:
        assert client.get("/api/v1/runs/").status_code == 401
    eventually(lambda: "celery" in own_hub.said(), what="the worker writes to the output of `up`, too")
    own_hub.stop()
    lines = [json.loads(line) for line in own_hub.said().splitlines() if line not in OF_CELERY]
    assert {line["logger"] for line in lines} >= {"trainhub.up"}
    assert any(line["logger"].startswith("django") for line in lines)
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    assert sorted(path.name for path in (own_hub.data_dir / "logs").iterdir()) == ["valkey.log"]


@pytest.mark.slow
def test_a_part_that_never_starts_is_explained_without_its_file(own_hub: Hub) -> None:
    own_hub.settings |= {"LOG_TO": "stdout", "LOG_FORMAT": "nonsense"}
    with pytest.raises(AssertionError):
        own_hub.start()
    assert "LOG_FORMAT=NONSENSE must be one of LINES, JSON" in own_hub.said()
    assert "Traceback" not in own_hub.said()

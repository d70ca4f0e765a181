"""`logs -f` from the queue on: what the run waits for, its preparation, and then its first rank."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.command_line import CommandLine
from tests.sdk.scripted_hub import Reply, Request, ScriptedHub

RUN = {"id": "a" * 32, "number": 12, "attempt": 1, "state": "Running", "sentence": ""}
QUEUED = {**RUN, "attempt": 0, "state": "Queued", "sentence": "Waiting for a GPU."}
PREPARING = {**RUN, "state": "Preparing"}
FAILED = {**RUN, "state": "Failed", "sentence": "The environment could not be made."}
COMPLETED = {**RUN, "state": "Completed"}
PREPARATION = b"12:00:00 Installing.\n"
DRIVER = b"epoch 0\n"


def log(name: str, rank: int | None, size: int) -> dict[str, Any]:
    return {"name": name, "rank": rank, "size": size, "complete": False, "url": f"/{name}"}


class RunOfStates:
    """A hub whose run is in the next of these states each time that somebody asks for it."""

    def __init__(self, *states: dict[str, Any], driver: bytes = b"") -> None:
        self._states = list(states)
        self._driver = driver

    def __call__(self, request: Request) -> Reply:
        state = self._states[0]
        path, _, query = request.path.partition("?")
        if path.endswith("_log.txt"):
            is_written = "55" in path or state["state"] in ("Running", "Completed")
            text = (PREPARATION if "55" in path else self._driver) if is_written else b""
            rest = text[int(query.split("offset=")[1].split("&")[0]) :]
            is_complete = "true" if is_written else "false"
            return Reply(body=rest, headers={"X-Log-Complete": is_complete, "X-Log-Size": str(len(text))})
        if path.endswith("/logs/"):
            logs = [
                log("55_preparation_log.txt", None, len(PREPARATION)),
                log("70_driver_log.txt", 0, 0),
                log("logs/own_log.txt", None, 4),
            ]
            return Reply(body=json.dumps({"logs": logs}).encode())
        if len(self._states) > 1:
            self._states.pop(0)
        return Reply(body=json.dumps(self._states[0]).encode())


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainhub_sdk.log_reader.PAUSE_S", 0.01)


def test_a_run_is_followed_from_the_queue_on(
    scripted: tuple[ScriptedHub, str], trainhub: CommandLine
) -> None:
    states = [QUEUED, QUEUED, QUEUED, PREPARING, PREPARING, PREPARING, RUN, COMPLETED]
    scripted[0].replies = [RunOfStates(*states, driver=DRIVER)]
    result = trainhub("logs", "-f", "12")
    assert (result.code, result.out) == (0, DRIVER.decode())
    assert result.err.splitlines() == [
        "Run 12 is Queued: Waiting for a GPU.",
        "Run 12 is Preparing.",
        "--- 55_preparation_log.txt",
        "12:00:00 Installing.",
        "--- 70_driver_log.txt",
    ]


def test_a_run_that_fails_while_it_is_prepared_shows_how_far_that_came(
    scripted: tuple[ScriptedHub, str], trainhub: CommandLine
) -> None:
    scripted[0].replies = [RunOfStates(PREPARING, PREPARING, FAILED)]
    result = trainhub("logs", "-f", "12")
    assert (result.code, result.out) == (0, "")
    assert result.err.splitlines() == ["--- 55_preparation_log.txt", "12:00:00 Installing."]


def test_a_run_that_has_written_something_begins_with_that(
    scripted: tuple[ScriptedHub, str], trainhub: CommandLine
) -> None:
    hub = RunOfStates(RUN, COMPLETED, driver=DRIVER)
    scripted[0].replies = [lambda request: with_driver_size(hub(request))]
    result = trainhub("logs", "-f", "12")
    assert (result.code, result.out, result.err) == (0, DRIVER.decode(), "")


def with_driver_size(reply: Reply) -> Reply:
    """The list of logs says that the first rank has written something."""
    return Reply(
        reply.status, reply.body.replace(b'"rank": 0, "size": 0', b'"rank": 0, "size": 8'), reply.headers
    )

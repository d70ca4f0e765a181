"""What the lists of machines and metrics show."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.command_line import CommandLine
from tests.sdk.scripted_hub import Reply, Request, ScriptedHub

GPU = {
    "index": 0,
    "name": "NVIDIA H100",
    "profile": "",
    "memory_bytes": 80 * 2**30,
    "memory_used_bytes": 40 * 2**30,
    "utilization_pct": 97.4,
    "power_w": None,
    "temperature_c": 61.0,
    "state": "ok",
    "error": "",
    "fault": "",
    "held": {"run": "f" * 32, "title": "run 41"},
}
NODE = {
    "name": "gpu-1",
    "cluster": "lab",
    "status": "ready",
    "drained_at": None,
    "gpus": [GPU, {**GPU, "index": 1, "held": None, "fault": "XID 48"}],
    "slots": 8,
    "slots_free": 8,
    "cpu_pct": 12.5,
    "memory_bytes": 2**40,
    "memory_used_bytes": None,
    "last_report_at": None,
}
RUN = {"id": "a" * 32, "number": 3, "state": "Completed", "created_by": "ada"}
LOSS = {"key": "loss", "last": 0.123456789, "min": 0.1, "max": "NaN", "last_step": 9, "count": 10}
ANSWERS: dict[str, Any] = {
    "/api/v1/nodes/": [NODE],
    "/api/v1/runs/3/": RUN,
    "/api/v1/me/": {"user": "ada"},
    "/api/v1/runs/": {"results": [RUN], "next": None},
    f"/api/v1/runs/{'a' * 32}/": RUN,
    f"/api/v1/runs/{'a' * 32}/metrics/": {"metrics": [LOSS]},
    "/api/v1/compare/metrics/": {"runs": [{**RUN, "metrics": [LOSS]}, {**RUN, "number": 4, "metrics": []}]},
}


@pytest.fixture(autouse=True)
def hub(scripted: tuple[ScriptedHub, str]) -> ScriptedHub:
    def reply(request: Request) -> Reply:
        return Reply(body=json.dumps(ANSWERS[request.path.split("?")[0]]).encode())

    scripted[0].replies = [reply]
    return scripted[0]


def table(trainhub: CommandLine, *arguments: str) -> list[list[str]]:
    return [line.split() for line in trainhub(*arguments).out.splitlines()]


def test_gpus_say_who_has_them_and_what_is_wrong(trainhub: CommandLine) -> None:
    first, second = table(trainhub, "gpus")[1:]
    assert first == ["gpu-1", "0", "NVIDIA", "H100", "97", "40", "80", "-", "61", "run", "41"]
    assert second[-3:] == ["free", "XID", "48"]
    rows = [json.loads(line) for line in trainhub("gpus", "--json").out.splitlines()]
    assert [(row["node"], row["index"]) for row in rows] == [("gpu-1", 0), ("gpu-1", 1)]


def test_nodes_say_what_is_free(trainhub: CommandLine) -> None:
    assert table(trainhub, "nodes")[1] == [
        "gpu-1",
        "lab",
        "ready",
        "1/2",
        "8/8",
        "12.5",
        "-",
        "1024",
        "-",
        "-",
    ]


def test_metrics_are_rounded_for_people_only(trainhub: CommandLine) -> None:
    assert table(trainhub, "metrics", "3")[1] == ["loss", "0.12346", "0.1", "NaN", "9", "10"]
    assert json.loads(trainhub("metrics", "3", "--json").out) == LOSS


def test_runs_are_compared_side_by_side(hub: ScriptedHub, trainhub: CommandLine) -> None:
    rows = table(trainhub, "compare", "3", "@last")
    assert rows == [
        ["METRIC", "RUN", "3", "RUN", "4"],
        ["state", "Completed", "Completed"],
        ["loss", "0.12346", "-"],
    ]
    paths = [request.path for request in hub.requests]
    assert "/api/v1/runs/?page_size=1&created_by=ada" in paths
    assert paths[-1] == f"/api/v1/compare/metrics/?runs={'a' * 32}%2C{'a' * 32}"

"""What holds afterwards, whatever went wrong."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx

from tests.chaos.load import output_of
from tests.chaos.world import ChaosHosts
from tests.hosts import processes
from tests.hub import FINAL, eventually

SETTLED_WITHIN_S = 300
FOLDER = re.compile(r"([0-9a-f]{32})-(\d+)")
LINE = re.compile(rb"(?:line|counted to) (\d+) (\d+\.\d+)")
TOKEN = b"MLFLOW_TRACKING_TOKEN="


@dataclass(frozen=True)
class RankLog:
    """The log of a rank on its host. `begin`, `end`: when it was seen first and last, by the clock of all
    hosts."""

    run: str
    attempt: int
    rank: int
    host: str
    gpus: frozenset[str]
    begin: float
    end: float
    starts: int
    path: Path


def rank_logs(world: ChaosHosts) -> list[RankLog]:
    """Of every rank that has started, on whatever host."""
    pattern = "attempts/*/logs/70_driver_log*"
    paths = [(host.name, path) for host in world.hosts for path in host.node.glob(pattern)]
    return [log for name, path in paths if (log := _rank_log(name, path)) is not None]


def _rank_log(host: str, path: Path) -> RankLog | None:
    lines = path.read_bytes().splitlines()
    starts = [json.loads(line[6:]) for line in lines if line.startswith(b"start {")]
    folder = FOLDER.search(str(path.parent))
    if not starts or folder is None:
        return None
    first = starts[0]
    times = [float(match[2]) for line in lines if (match := LINE.match(line))]
    gpus = frozenset(filter(None, first["gpus"].split(",")))
    return RankLog(
        folder[1],
        int(folder[2]),
        first["rank"],
        host,
        gpus,
        first["at"],
        max(times, default=first["at"]),
        len(starts),
        path,
    )


def tokens_in_use(world: ChaosHosts) -> set[str]:
    """The tokens of the runs whose processes live now."""
    found = set()
    for host in world.hosts:
        for pid in host.pids():
            for variable in processes.read(pid, "environ").split(b"\0"):
                if variable.startswith(TOKEN):
                    found.add(variable.removeprefix(TOKEN).decode())
    return found


def check_all(world: ChaosHosts, submitted: list[str], tokens: set[str], say: Callable[[str], None]) -> None:
    """Fails with what does not hold. All troubles are over. `say` is told what held."""
    details = {run: _end_of(world, run) for run in submitted}
    check_none_was_doubled(world, submitted)
    wrong = [_story(world, detail) for detail in details.values() if detail["state"] != "Completed"]
    assert not wrong, "runs that should have come through:\n" + "\n".join(wrong)
    say("every run has completed")
    logs = rank_logs(world)
    check_no_rank_started_twice(logs)
    check_no_gpu_was_shared(logs, lambda run: _story(world, details[run]))
    say(f"{len(logs)} ranks were started once each, and no GPU served two attempts at a time")
    check_logs(world, details, logs)
    check_outputs(world, submitted)
    say("every byte of the logs and of the outputs is at the hub")
    check_nothing_is_left(world)
    world.check_files()
    say("every queue is empty, no process is left, and the audit trail verifies")
    check_tokens(world, tokens)
    say(f"none of {len(tokens)} tokens of runs opens anything")


def _story(world: ChaosHosts, detail: dict[str, Any]) -> str:
    """How a run ended, and what its page says of the way there."""
    events = world.runs.get(f"/runs/{detail['id']}/events/")
    lines = [f"  {event['at']} attempt {event['attempt']}: {event['message']}" for event in events]
    return "\n".join((f"{detail['number']}: {detail['state']}, {detail['sentence']}", *lines))


def _end_of(world: ChaosHosts, run: str) -> dict[str, Any]:
    return eventually(
        lambda: detail if (detail := world.runs.detail(run))["state"] in FINAL else None,
        SETTLED_WITHIN_S,
        f"run {run} ends",
    )


def check_none_was_doubled(world: ChaosHosts, submitted: list[str]) -> None:
    """The hub has the submitted runs and no others, however often their submission was repeated."""
    stored, path = list[str](), "/runs/?experiment=chaos&page_size=500"
    while path:
        page = world.runs.get(path)
        stored += [run["id"] for run in page["results"]]
        path = (page["next"] or "").partition("/api/v1")[2]
    assert sorted(stored) == sorted(submitted), (
        "runs that nobody submitted, or of which none is left: " + str(set(stored) ^ set(submitted))
    )


def check_no_rank_started_twice(logs: list[RankLog]) -> None:
    counted: dict[tuple[str, int, int], list[RankLog]] = {}
    for log in logs:
        counted.setdefault((log.run, log.attempt, log.rank), []).append(log)
    doubled = [same for same in counted.values() if sum(log.starts for log in same) != 1]
    assert not doubled, f"started more than once: {doubled}"


def check_no_gpu_was_shared(logs: list[RankLog], story: Callable[[str], str]) -> None:
    """Not by two attempts at one time; the ranks of one attempt see all GPUs that it has on their host.
    `story`: what the page of a run says of its way."""
    spans: dict[tuple[str, str], dict[tuple[str, int], tuple[float, float]]] = {}
    for log in logs:
        for gpu in log.gpus:
            users = spans.setdefault((log.host, gpu), {})
            begin, end = users.get((log.run, log.attempt), (log.begin, log.end))
            users[log.run, log.attempt] = min(begin, log.begin), max(end, log.end)
    for place, users in spans.items():
        in_turn = sorted(users.items(), key=lambda user: user[1])
        for (earlier, (_, end)), (later, (begin, _)) in pairwise(in_turn):
            assert end <= begin, (
                f"at one time on {place}: {earlier} until {_by_the_clock(end)}, and {later} from "
                f"{_by_the_clock(begin)}:\n" + "\n".join(map(story, {earlier[0], later[0]}))
            )


def _by_the_clock(moment: float) -> str:
    """Returns when a monotonic time was, as the timeline and the logs of the parts say it."""
    at = datetime.now().astimezone() - timedelta(seconds=time.monotonic() - moment)
    return at.isoformat(timespec="milliseconds")


def check_logs(world: ChaosHosts, details: dict[str, dict[str, Any]], logs: list[RankLog]) -> None:
    """Every byte that a rank of the last attempt wrote is at the hub, and nothing else."""
    seen = set()
    for log in logs:
        detail = details.get(log.run)
        if detail is None or log.attempt != detail["attempt"]:
            continue
        written = log.path.read_bytes()
        stored = world.runs.log(log.run, log.path.name)
        assert stored == written, f"{log.path.name} of run {detail['number']} differs on {log.host}"
        numbers = [int(match[1]) for line in written.splitlines() if (match := LINE.match(line))]
        assert numbers[:-1] == list(range(1, len(numbers))), f"lines of {log.path}"
        assert b"counted to" in written
        seen.add((log.run, log.rank))
    expected = {
        (run, rank)
        for run, detail in details.items()
        for rank in range(detail["spec"]["distribution"]["process_count"])
    }
    assert seen == expected, f"ranks without a log: {expected - seen}"


def check_outputs(world: ChaosHosts, submitted: list[str]) -> None:
    for run in submitted:
        answer = world.runs.client.get(f"/api/v1/runs/{run}/outputs/weights.bin")
        assert answer.status_code == httpx.codes.OK, f"the output of run {run}: {answer.text}"
        assert answer.content == output_of(run), f"the output of run {run} has other bytes"


def check_nothing_is_left(world: ChaosHosts) -> None:
    """No lease, no process, no message, nothing that waits for the hub."""
    names = {host.name for host in world.hosts}

    def leases() -> list[Any]:
        return [
            lease for node in world.runs.get("/nodes/") if node["name"] in names for lease in node["leases"]
        ]

    def backlog() -> dict[str, int]:
        rows = world.runs.get("/system/")["backlogs"]
        return {row["name"]: row["waiting"] for row in rows if row["waiting"]}

    eventually(lambda: not leases(), 60, "all GPUs are free")
    eventually(lambda: not backlog(), 90, "nothing waits for the hub")
    marks = [
        processes.command(pid)
        for host in world.hosts
        for pid in host.pids()
        if b"TRAINHUB_RUN_ID=" in processes.read(pid, "environ") and processes.lives(pid)
    ]
    assert not marks, f"processes of runs: {marks}"
    world.hub.manage("audit", "verify")


def check_tokens(world: ChaosHosts, tokens: set[str]) -> None:
    """None of a run that is over opens anything."""
    for token in tokens:
        with world.hub.client(token) as client:
            answer = client.get("/api/2.0/mlflow/experiments/get", params={"experiment_id": "0"})
        assert answer.status_code == httpx.codes.UNAUTHORIZED, answer.text

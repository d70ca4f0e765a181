"""Agents on real hosts upgrade themselves on the hub's order: runs go on, and whatever goes wrong, the agent
of before goes on, too, and the hub says why."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

import pytest

from tests.journeys.runs import sha256
from tests.upgrade.agents.conftest import UpgradeHosts
from tests.upgrade.agents.older_agent import (
    MAIN,
    OLDER,
    damage_archive,
    install_older,
    replace_archive,
    wait_for_version,
)
from trainhub_launch.upgrades.program_order import STEPS
from trainhub_node import __version__

pytestmark = [pytest.mark.hosts, pytest.mark.slow]
COUNTING = """
import os, pathlib, time
number = 0
while not pathlib.Path(os.environ["GO_ON"]).exists():
    number += 1
    print("line", number, flush=True)
    time.sleep(0.02)
print("counted to", number, flush=True)
"""


def order(older: UpgradeHosts, *arguments: str, check: bool = True) -> str:
    done = older.hub.manage(*arguments, "--wait", check=check)
    return done.stdout + done.stderr


def install_by_hand(older: UpgradeHosts) -> None:
    """Installs the version of before again, as somebody would with pip, and restarts the agents."""
    for host in older.hosts:
        install_older(host.folder / "installed")
        os.utime(host.folder / "installed/trainhub_node/__init__.py")
        host.kill_agents()
    for host in older.hosts:
        wait_for_version(older.hub, host.name, OLDER)


def test_a_cluster_upgrades_in_waves_while_runs_go_on(older: UpgradeHosts) -> None:
    first, second = older.hosts
    assert older.hub.manage("node", "list").stdout.count(f"{OLDER} (behind)") == 2
    variables = {"GO_ON": "/tmp/go-on"}
    distribution = {"type": "pytorch", "communication_backend": "gloo", "process_count": 2, "node_count": 2}
    run = older.script(COUNTING, distribution=distribution, environment_variables=variables)
    for rank in range(2):
        older.runs.says(run, b"line 50", f"70_driver_log_{rank}.txt")
    before = [set(host.marked(run)) for host in older.hosts]

    printed = order(older, "cluster", "upgrade", "gang")
    assert f"Ordered version {__version__} for {first.name}, {second.name}, 1 at a time." in printed
    steps = [tuple(line.split("\t")[:2]) for line in printed.splitlines() if "\t" in line]
    # Of steps that take less than a look there is no line.
    begun = next(place for place, step in enumerate(steps) if step[0] == second.name and step[1] != "waiting")
    assert steps.index((first.name, "done")) < begun, printed
    assert "The rollout is done." in printed
    for host, processes in zip(older.hosts, before, strict=True):
        wait_for_version(older.hub, host.name)
        host.wait_for_one_process()
        assert set(host.marked(run)) == processes
    later = older.script("print('on the new version')")
    assert older.runs.ended(later, 60)["state"] == "Completed"

    for host in older.hosts:
        (host.folder / "go-on").touch()
    assert older.runs.ended(run, 90)["state"] == "Completed"
    for rank in range(2):
        name = f"70_driver_log_{rank}.txt"
        stored, written = older.runs.log(run, name), older.file_on_host(run, name).read_bytes()
        assert b"counted to" in stored
        assert sha256(stored) == sha256(written)
    # Another start of the service, as after a reboot, starts the new version without a trial.
    first.kill_agents()
    first.wait_for_one_process()
    wait_for_version(older.hub, first.name)
    assert first.agent_log.read_text().count("Trying the program") == 1


def _broken_import(name: str, data: bytes) -> bytes | None:
    return b"raise ImportError('it lacks a module')\n" if name == MAIN else data


def _ends_at_once(name: str, data: bytes) -> bytes | None:
    return (
        data.replace(
            b"    def run(self) -> None:\n", b"    def run(self) -> None:\n        raise OSError('broken')\n"
        )
        if name == "trainhub_node/agent.py"
        else data
    )


def _never_reports(name: str, data: bytes) -> bytes | None:
    return (
        data.replace(b"self._uplink.start()", b"print('I hang')")
        if name == "trainhub_node/agent.py"
        else data
    )


def _reports_once_cut_off(name: str, data: bytes) -> bytes | None:
    waits = b"while not __import__('os').path.exists('/tmp/cut-off'): __import__('time').sleep(0.1)\n        "
    return (
        data.replace(b"self._uplink.start()", waits + b"self._uplink.start()")
        if name == "trainhub_node/agent.py"
        else data
    )


FLAWS: list[tuple[Callable[[str, bytes], bytes | None], str]] = [
    (_broken_import, "does not start here: ImportError: it lacks a module"),
    (_ends_at_once, "ended with code 1. Its last line: trainhub-node: broken"),
    (_never_reports, "did not report to the hub within"),
]


def test_a_flawed_program_is_given_up_the_reason_is_told_and_the_rest_stays(older: UpgradeHosts) -> None:
    first, second = older.hosts
    # An order packs the archive. Then somebody installs the package of before by hand, which is respected.
    assert "The rollout is done." in order(older, "cluster", "upgrade", "gang", "--at-once", "2")
    install_by_hand(older)
    for host in older.hosts:
        assert "Another package was installed" in host.agent_log.read_text()
    run = older.script(COUNTING, environment_variables={"GO_ON": "/tmp/go-on"})
    older.runs.says(run, b"line 5", "70_driver_log.txt")
    for flaw, reason in FLAWS:
        replace_archive(older.hub, flaw)
        printed = order(older, "cluster", "upgrade", "gang", check=False)
        assert reason in printed, printed
        assert f"{second.name}\tleft out\tNot ordered, because {first.name} failed." in printed
        for host in older.hosts:
            wait_for_version(older.hub, host.name, OLDER)
    damage_archive(older.hub)
    printed = order(older, "node", "upgrade", second.name, check=False)
    assert "has another SHA-256 than the order names" in printed, printed
    for host in older.hosts:
        (host.folder / "go-on").touch()
    assert older.runs.ended(run, 90)["state"] == "Completed"


def test_an_agent_that_is_killed_at_each_step_or_cut_off_comes_to_an_end(older: UpgradeHosts) -> None:
    first, second = older.hosts
    variables = {"GO_ON": "/tmp/go-on"}
    run = older.script(COUNTING, environment_variables=variables)
    older.runs.says(run, b"line 5", "70_driver_log.txt")
    first.linger_at_steps()
    done: list[str] = []
    ordering = threading.Thread(
        target=lambda: done.append(order(older, "node", "upgrade", first.name)), daemon=True
    )
    ordering.start()
    killed_at: list[str] = []
    while ordering.is_alive():
        step = str((step_of(older, first.name) or {}).get("step", ""))
        if step and step not in killed_at:
            killed_at.append(step)
            first.kill_agents()
        time.sleep(0.2)
    assert done, first.agent_log.read_text()[-2000:]
    assert tuple(step for step in killed_at if step in STEPS) == STEPS
    wait_for_version(older.hub, first.name)

    # The new version starts, but the hub is out of its reach before it has reported.
    replace_archive(older.hub, _reports_once_cut_off)
    failed: list[str] = []
    ordering = threading.Thread(
        target=lambda: failed.append(order(older, "node", "upgrade", second.name, check=False)), daemon=True
    )
    ordering.start()
    second.wait_for_log("Restarting with version", 120)
    second.cut()
    try:
        (second.folder / "cut-off").touch()
        second.wait_for_log("The program of before goes on", 120)
    finally:
        second.heal()
    ordering.join(120)
    assert "did not report to the hub within 30 s. Its last line:" in failed[0], failed
    wait_for_version(older.hub, second.name, OLDER)
    for host in older.hosts:
        (host.folder / "go-on").touch()
    assert older.runs.ended(run, 90)["state"] == "Completed"


def step_of(older: UpgradeHosts, name: str) -> dict[str, object] | None:
    rollout = older.runs.get("/clusters/gang/agents/")["rollout"]
    return next((node for node in rollout["nodes"] if node["node"] == name), None) if rollout else None

"""Runs on a real Slurm whose jobs Slurm ends, and runs that outlive one of its daemons."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub import eventually
from tests.slurm.cluster import MEMORY_GROUPS, SlurmCluster
from tests.slurm.configuration import MEMORY_MB
from tests.slurm.hub import PATIENCE_S, SlurmHub
from tests.slurm.people import Person

pytestmark = [pytest.mark.slow, pytest.mark.slurm, pytest.mark.long]
# Touches far more memory than its job may have, and keeps it: Slurm itself looks once a second.
GREEDY = """
import time
print("here", flush=True)
pages = bytearray(800_000_000)
for at in range(0, len(pages), 4096):
    pages[at] = 1
time.sleep(120)
"""
SMALL = {"memory": 400_000_000}
# Goes on until the test makes the file, in a folder that all nodes have.
PATIENT = """
import os, sys, time
print("here", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.1)
print("done", flush=True)
"""
TWO_NODES = {"type": "pytorch", "communication_backend": "gloo", "process_count": 2, "node_count": 2}
FIRST, SECOND = "70_driver_log_0.txt", "70_driver_log_1.txt"


@pytest.fixture(autouse=True)
def _leaves_nothing(slurm_hub: SlurmHub) -> Iterator[None]:
    yield
    slurm_hub.clear()


@pytest.fixture(scope="module")
def strict_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmHub]:
    """Of a Slurm that looks at the memory of jobs by itself, once a second."""
    slurm = SlurmCluster(
        1,
        has_accounting=False,
        limits_memory=False,
        JobAcctGatherParams="OverMemoryKill",
        JobAcctGatherFrequency="task=1",
    )
    hub = SlurmHub(slurm, tmp_path_factory.mktemp("strict hub"))
    try:
        slurm.start()
        yield hub.start()
    finally:
        hub.stop()
        slurm.stop()


@pytest.fixture
def signal(slurm_hub: SlurmHub) -> Iterator[Path]:
    """The file for which runs of the script PATIENT wait."""
    file = slurm_hub.logs / "signal"
    yield file
    file.unlink(missing_ok=True)


class TestMemory:
    @pytest.mark.skipif(not MEMORY_GROUPS.is_dir(), reason="needs control groups of version 1 for memory")
    def test_the_kernel_ends_what_needs_too_much(self, slurm_hub: SlurmHub) -> None:
        run = slurm_hub.script(GREEDY, resources=SMALL)
        ended = slurm_hub.ended(run)
        assert (ended["state"], ended["reason"]) == ("Failed", "out_of_memory"), ended["sentence"]
        assert slurm_hub.runs.log(run) == b"here\n"
        job = slurm_hub.job(run)
        eventually(lambda: not slurm_hub.jobs(), PATIENCE_S, "its job ends by itself")
        states = slurm_hub.slurm.admin("sacct", "-n", "-P", "-j", f"{job}.0", "-o", "State")
        assert states.split() == ["OUT_OF_MEMORY"]
        # Slurm can remove its groups only if there are none of others in them.
        assert list(MEMORY_GROUPS.glob(f"{slurm_hub.slurm.folder.name}/*/*/job_{job}")) == []

    def test_slurm_ends_a_job_that_needs_too_much(self, strict_hub: SlurmHub) -> None:
        run = strict_hub.script(GREEDY, resources=SMALL)
        ended = strict_hub.ended(run)
        assert (ended["state"], ended["reason"]) == ("Failed", "ended_outside"), ended["sentence"]
        log = strict_hub.logs / f"trainhub-{strict_hub.job(run)}.log"
        assert f"{log} says why." in ended["sentence"]
        assert "Exceeded job memory limit" in log.read_text()


def test_a_preempted_run_starts_again_and_costs_no_retry(
    slurm_hub: SlurmHub, signal: Path, bo: Person
) -> None:
    slurm_hub.change(partition="spare")
    try:
        run = slurm_hub.script(PATIENT, arguments=[str(signal)], distribution=TWO_NODES)
        for log in (FIRST, SECOND):
            slurm_hub.runs.says(run, b"here", log, PATIENCE_S)
        first = slurm_hub.job(run)
        urgent = bo.submit("sleep 600", nodes=3, memory_mb=MEMORY_MB, partition="urgent")
        bo.until(urgent, "RUNNING")
        assert slurm_hub.state(first) == "PREEMPTED"
        eventually(lambda: slurm_hub.job(run) != first, PATIENCE_S, "it is submitted again")
        slurm_hub.waits(run, "is in Slurm's queue")
        bo.cluster.admin("scancel", str(urgent))
        slurm_hub.runs.until(run, "Running", seconds=PATIENCE_S)
        signal.touch()
        slurm_hub.completes(run)
    finally:
        slurm_hub.change(partition="main")
    assert slurm_hub.runs.detail(run)["attempt"] == 2
    messages = [event["message"] for event in slurm_hub.runs.get(f"/runs/{run}/events/")]
    assert any("PREEMPTED" in text and "without using up a retry" in text for text in messages), messages


def test_a_run_goes_on_while_slurmd_is_killed_and_started_again(slurm_hub: SlurmHub, signal: Path) -> None:
    run = slurm_hub.script(PATIENT, arguments=[str(signal)], distribution=TWO_NODES)
    for log in (FIRST, SECOND):
        slurm_hub.runs.says(run, b"here", log, PATIENCE_S)
    nodes = slurm_hub.nodes_of(run)
    assert len(nodes) == 2
    # One of them has the batch script.
    for name in nodes:
        slurm_hub.slurm.kill_node_daemon(name)
    for name in nodes:
        slurm_hub.slurm.start_node(name)
    step = f"{slurm_hub.job(run)}.0"
    eventually(
        lambda: all(step in slurm_hub.slurm.steps_on(name) for name in nodes),
        PATIENCE_S,
        "both know its step again",
    )
    assert slurm_hub.runs.detail(run)["state"] == "Running"
    signal.touch()
    slurm_hub.completes(run)
    assert slurm_hub.runs.detail(run)["attempt"] == 1
    assert [slurm_hub.runs.log(run, log) for log in (FIRST, SECOND)] == [b"here\ndone\n"] * 2
    eventually(
        lambda: slurm_hub.state(slurm_hub.job(run)) == "COMPLETED", PATIENCE_S, "its job has completed"
    )
    slurm_hub.slurm.wait_until_idle()


def test_a_run_completes_while_slurmd_is_away(slurm_hub: SlurmHub, signal: Path) -> None:
    run = slurm_hub.script(PATIENT, arguments=[str(signal)])
    slurm_hub.starts(run)
    (name,) = slurm_hub.nodes_of(run)
    slurm_hub.slurm.kill_node_daemon(name)
    try:
        signal.touch()
        slurm_hub.completes(run)
    finally:
        slurm_hub.slurm.start_node(name)
    eventually(
        lambda: slurm_hub.state(slurm_hub.job(run)) == "COMPLETED", PATIENCE_S, "its job has completed"
    )
    slurm_hub.slurm.wait_until_idle()


def test_nobody_puts_a_job_back_into_the_queue(slurm_hub: SlurmHub, signal: Path) -> None:
    run = slurm_hub.script(PATIENT, arguments=[str(signal)])
    slurm_hub.starts(run)
    job = slurm_hub.job(run)
    for verb in ("requeue", "requeuehold"):
        assert "disabled" in slurm_hub.slurm.refusal("scontrol", verb, job)
    signal.touch()
    slurm_hub.completes(run)
    assert slurm_hub.runs.detail(run)["attempt"] == 1

"""Jobs that end from outside: Slurm cancels or preempts them, and signals ranks and node program at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hub import eventually
from tests.slurm.hub import PATIENCE_S, SlurmHub
from tests.slurm.people import Person
from tests.slurm.runs.test_runs import ALONE, FIRST_LOG, MOST, SAVE, WAIT

pytestmark = [pytest.mark.slow, pytest.mark.slurm, pytest.mark.long]
SAVE_SLOWLY = SAVE.replace('print("saved', 'time.sleep(1); print("saved')


@pytest.fixture(autouse=True)
def _leaves_nothing(slurm_hub: SlurmHub) -> Iterator[None]:
    yield
    slurm_hub.clear()


@pytest.mark.parametrize("nodes", [1, 3])
def test_canceled_in_slurm_is_canceled_here(slurm_hub: SlurmHub, nodes: int) -> None:
    run = slurm_hub.script(WAIT, nodes=nodes, processes=2 * nodes, resources={"gpus_per_node": 0})
    slurm_hub.starts(run, FIRST_LOG)
    slurm_hub.slurm.admin("scancel", slurm_hub.job(run))
    ended = slurm_hub.ended(run)
    assert (ended["state"], ended["sentence"]) == ("Canceled", "Canceled by account 0 in Slurm.")


def test_what_the_ranks_write_after_scancel_is_kept(slurm_hub: SlurmHub) -> None:
    run = slurm_hub.script(SAVE_SLOWLY)
    slurm_hub.starts(run)
    slurm_hub.slurm.admin("scancel", slurm_hub.job(run))
    ended = slurm_hub.ended(run)
    assert ended["state"] == "Canceled"
    assert slurm_hub.runs.log(run) == b"here\nsaved\n"


@pytest.mark.parametrize("script", [WAIT, SAVE_SLOWLY], ids=["killed", "saves and exits with 0"])
def test_preempted_with_a_grace_period_it_is_tried_again(slurm_hub: SlurmHub, script: str) -> None:
    slurm = slurm_hub.slurm
    slurm_hub.change(partition="spare")
    slurm.admin("scontrol", "update", "PartitionName=spare", "GraceTime=20")
    try:
        run = slurm_hub.script(script, nodes=3, processes=3, resources=MOST)
        slurm_hub.starts(run, FIRST_LOG)
        urgent = Person(slurm, "bo")
        job = urgent.submit("true", nodes=3, memory_mb=3000, partition="urgent")
        eventually(lambda: slurm_hub.runs.detail(run)["attempt"] == 2, PATIENCE_S, "it is tried again")
        urgent.until(job, "COMPLETED")
        events = slurm_hub.runs.get(f"/runs/{run}/events/")
        assert any("PREEMPTED" in event["message"] for event in events)
    finally:
        slurm.admin("scontrol", "update", "PartitionName=spare", "GraceTime=0")
        slurm_hub.change(partition="main")
        slurm_hub.clear()


def test_lost_before_it_started_it_is_submitted_again(slurm_hub: SlurmHub) -> None:
    slurm = slurm_hub.slurm
    waiting = slurm.folder / "waiting"
    waiting.write_text("#!/bin/sh\nexec sleep 600\n")
    waiting.chmod(0o755)
    slurm_hub.change(partition="spare", python=str(waiting))
    try:
        run = slurm_hub.script(ALONE, nodes=3, processes=3, resources=MOST)
        eventually(
            lambda: slurm.admin("squeue", "-h", "-p", "spare", "-t", "RUNNING", "-o", "%A"),
            PATIENCE_S,
            "its job runs",
        )
        first = slurm_hub.job(run)
        slurm_hub.change(partition="main")
        slurm_hub.restore_python()
        urgent = Person(slurm, "bo")
        urgent.submit("true", nodes=3, memory_mb=3000, partition="urgent")
        slurm_hub.completes(run)
        assert slurm_hub.job(run) != first
        assert slurm_hub.runs.detail(run)["attempt"] == 1
    finally:
        slurm_hub.change(partition="main")
        slurm_hub.restore_python()


def test_canceled_while_a_submission_has_no_answer_leaves_no_job(slurm_hub: SlurmHub) -> None:
    """As if the hub had ended in the middle of the call."""
    slurm = slurm_hub.slurm
    slurm.admin("scontrol", "update", "PartitionName=main", "State=DOWN")
    try:
        run = slurm_hub.script(ALONE)
        slurm_hub.waits(run, "partition")
        slurm_hub.evaluate(
            f"Allocation.objects.filter(holder={run!r})"
            ".update(state='wanted', job_id=None, calling_until=timezone.now())",
            "from django.utils import timezone",
        )
        slurm_hub.runs.client.post(f"/api/v1/runs/{run}/cancel/").raise_for_status()
        eventually(lambda: not slurm_hub.jobs(), PATIENCE_S, "its job is found and canceled")
    finally:
        slurm.admin("scontrol", "update", "PartitionName=main", "State=UP")


def test_a_step_that_is_killed_alone_ends_the_run_with_slurms_word(slurm_hub: SlurmHub) -> None:
    run = slurm_hub.script(WAIT)
    slurm_hub.starts(run)
    slurm_hub.slurm.admin("scancel", f"{slurm_hub.job(run)}.0")
    ended = slurm_hub.ended(run)
    assert ended["state"] == "Failed"
    assert f"Slurm's job {slurm_hub.job(run)} has ended (FAILED)." in ended["sentence"]
    eventually(lambda: not slurm_hub.jobs(), PATIENCE_S, "its job has ended, too")


def test_requeueing_is_refused_for_a_run(slurm_hub: SlurmHub) -> None:
    run = slurm_hub.script(WAIT)
    slurm_hub.starts(run)
    with pytest.raises(AssertionError, match="Requested operation is presently disabled"):
        slurm_hub.slurm.admin("scontrol", "requeue", slurm_hub.job(run))
    assert slurm_hub.runs.detail(run)["state"] == "Running"

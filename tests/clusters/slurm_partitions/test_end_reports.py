"""When the end that nodes report is believed, and when Slurm is heard first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clusters.allocations import allocation_requests, end_reports, new_requests, partitions
from clusters.allocations.allocation_requests import EndedJob
from clusters.allocations.end_reports import PATIENCE, may_explain
from clusters.backends.slurm.command_line import CommandLineClient
from clusters.backends.slurm.states import STATES
from clusters.models import Allocation
from tests.clusters.slurm_partitions.builders import make_allocation, make_partition
from tests.slurm.test_answers import Answers
from workspaces.task_names import TaskName

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 12, 24, 18, tzinfo=UTC)
SECOND = timedelta(seconds=1)
KEY = ("a" * 32, 1)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[TaskName]:
    """The messages to the worker."""
    sent: list[TaskName] = []
    monkeypatch.setattr(end_reports, "send_task_soon", sent.append)
    return sent


def _allocation(holder: str = KEY[0], **fields: Any) -> Allocation:
    cluster = Allocation.objects.first()
    values = {"state": "granted", "word": "RUNNING", "seen_at": NOW - SECOND, **fields}
    return make_allocation(cluster.cluster if cluster else make_partition(), holder, **values)


def _heard(word: str, at: datetime) -> None:
    Allocation.objects.update(word=word, seen_at=at)


def test_it_waits_until_slurm_was_asked_after_the_report(asked: list[TaskName]) -> None:
    _allocation()
    assert may_explain(KEY, NOW)
    assert may_explain(KEY, NOW + SECOND)
    assert asked == [TaskName.TEND_BACKENDS]
    _heard("RUNNING", NOW + 2 * SECOND)
    assert not may_explain(KEY, NOW + 3 * SECOND)


def test_an_end_that_could_not_be_told_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a worker that was killed in between."""
    _allocation()
    row = "41|PREEMPTED|0|0|n1|1|2|1|ada|main|cpu=1|N/A|None\n"
    monkeypatch.setattr(partitions, "observer_of", lambda _: CommandLineClient(Answers(squeue=row)))

    def interrupt(_: EndedJob) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        allocation_requests.observe(NOW, interrupt)
    assert Allocation.objects.get().over_at is None
    heard: list[EndedJob] = []
    allocation_requests.observe(NOW, heard.append)
    allocation_requests.observe(NOW, heard.append)
    assert [end.state for end in heard] == [STATES["PREEMPTED"]]
    assert Allocation.objects.get().over_at is not None


def test_one_question_is_for_all_attempts_of_a_cluster(asked: list[TaskName]) -> None:
    _allocation()
    _allocation("b" * 32, job_id=42)
    assert may_explain(KEY, NOW)
    assert may_explain(("b" * 32, 1), NOW)
    assert asked == [TaskName.TEND_BACKENDS]


def test_a_job_whose_processes_end_has_not_said_why_yet(asked: list[TaskName]) -> None:
    _allocation()
    may_explain(KEY, NOW)
    _heard("COMPLETING", NOW + SECOND)
    assert may_explain(KEY, NOW + 2 * SECOND)
    assert not may_explain(KEY, NOW + PATIENCE)
    assert len(asked) == 1


def test_a_slurm_that_is_away_leaves_it_at_what_the_nodes_say(asked: list[TaskName]) -> None:
    _allocation()
    may_explain(KEY, NOW)
    assert may_explain(KEY, NOW + PATIENCE - SECOND)
    assert not may_explain(KEY, NOW + PATIENCE)
    assert len(asked) == 1


def test_a_job_that_ended_by_itself_leaves_it_at_what_the_nodes_say(asked: list[TaskName]) -> None:
    _allocation(state="over", over_at=NOW, word="FAILED")
    assert not may_explain(KEY, NOW)


def test_an_end_that_was_seen_is_told_by_who_saw_it(asked: list[TaskName]) -> None:
    _allocation(state="over", over_at=NOW, word="PREEMPTED")
    assert may_explain(KEY, NOW + SECOND)
    assert not may_explain(KEY, NOW + PATIENCE)
    assert not asked


@pytest.mark.parametrize("state", ["wanted", None])
def test_without_a_job_there_is_nobody_to_ask(asked: list[TaskName], state: str | None) -> None:
    if state:
        _allocation(state=state, job_id=None)
    assert not may_explain(KEY, NOW)
    assert not asked


class TestLostStarts:
    def test_it_is_requested_again_without_a_trace_of_the_lost_job(self) -> None:
        row = _allocation(state="over", over_at=NOW, nodes=["n1"], calling_until=NOW)
        assert new_requests.request_again(KEY)
        row.refresh_from_db()
        assert (row.state, row.job_id, row.over_at, row.calling_until) == ("wanted", None, None, None)
        assert (row.losses, row.nodes, row.word) == (1, [], "")

    def test_not_for_ever(self) -> None:
        row = _allocation(state="over", over_at=NOW, losses=new_requests.MAX_LOSSES)
        assert not new_requests.request_again(KEY)
        row.refresh_from_db()
        assert row.state == "over"

    def test_not_while_its_job_lives_or_after_a_refusal(self) -> None:
        _allocation(state="granted")
        assert not new_requests.request_again(KEY)
        Allocation.objects.update(state="over", refused=True)
        assert not new_requests.request_again(KEY)

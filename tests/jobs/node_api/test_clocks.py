"""Nodes whose clocks differ: what they tell is compared and kept by the hub's clock."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.utils import timezone

from clusters.models import Node
from jobs.models import AttemptNode, Member
from jobs.states import RunState
from tests.jobs.builders import Played, alive, ended, launched, node, processes
from tests.jobs.gangs import state_of
from workspaces.access import Principal

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("ours", "theirs"), [(0, -40), (40, 0)])
def test_the_rank_that_failed_first_leads_though_its_clock_is_ahead(
    ours: int, theirs: int, who: Principal
) -> None:
    alpha = Played(node("alpha"), ahead_s=ours)
    beta = Played(node("beta"), nonce="b" * 32, ahead_s=theirs)
    run = launched(who, distribution={**processes(2), "node_count": 2})
    for played in (alpha, beta):
        played.ready(run)
    for rank, played in enumerate((alpha, beta)):
        played.claim(run)
        played.tell(run, "running", alive(rank))
    now = time.time()
    # Rank 0 raised three seconds before rank 1 saw its peer gone; by their own clocks it was 37 s after it.
    beta.tell(run, "done", ended(1, 1, at=now - 2 + theirs))
    alpha.tell(run, "done", ended(0, 3, at=now - 5 + ours))
    assert state_of(run) == (RunState.FAILED, "Rank 0 exited with code 3 on alpha.")
    first, second = Member.objects.order_by("rank")
    assert first.ended_at is not None
    assert second.ended_at is not None
    assert abs((second.ended_at - first.ended_at).total_seconds() - 3) < 0.5
    assert abs(second.ended_at.timestamp() - (now - 2)) < 1


def test_the_steps_of_a_run_are_told_by_the_hubs_clock(who: Principal) -> None:
    alpha = Played(node(), ahead_s=-300)
    run = launched(who)
    alpha.claim(run)
    alpha.tell(run, "running", alive(0))
    run.refresh_from_db()
    assert run.started_at is not None
    assert abs(timezone.now() - run.started_at) < timedelta(seconds=2)
    assert Node.objects.get().clock_offset_s == pytest.approx(300, abs=1)


def test_times_that_no_clock_shows_are_left_out(who: Principal) -> None:
    alpha = Played(node())
    run = launched(who)
    alpha.claim(run)
    alpha.tell(run, "running", alive(0))
    alpha.facts[(run.pk, 1)].phase_at["uploading"] = 1e300  # type: ignore[index]
    alpha.tell(run, "done", ended(0, at=float("inf")))
    assert state_of(run)[0] == RunState.COMPLETED
    assert Member.objects.get().ended_at is None
    assert "uploading" not in AttemptNode.objects.get().fact["phase_at"]

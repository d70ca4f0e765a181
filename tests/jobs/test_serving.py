"""TensorFlow with parameter servers on two nodes: the chief decides, and whoever only serves is ended when it
is done."""

from __future__ import annotations

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks

from jobs.models import Run
from jobs.states import MemberState, RunState
from tests.jobs.builders import Played, alive, ended, two_nodes
from tests.jobs.gangs import held, members, state_of, woken
from trainhub_launch.report import MemberFact
from workspaces.access import Principal

pytestmark = pytest.mark.django_db
CHIEF, WORKER, FAR_WORKER, SERVER = 0, 1, 2, 3
SERVING = {
    "distribution": {"type": "tensorflow", "worker_count": 2, "parameter_server_count": 1},
    "resources": {"node_count": 2},
}


def serving(who: Principal) -> tuple[Played, Played, Run]:
    """Chief, a worker and the parameter server on the head; the other worker on the other node."""
    alpha, beta, run = two_nodes(who, **SERVING)
    for played in (alpha, beta):
        played.ready(run)
    for played, ranks in ((alpha, (CHIEF, WORKER, SERVER)), (beta, (FAR_WORKER,))):
        played.claim(run)
        played.tell(run, "running", *map(alive, ranks))
    return alpha, beta, run


def told_to_end(rank: int) -> MemberFact:
    return ended(rank, None, signal=15, ended_by_us=True)


def test_the_other_node_is_woken_and_told_to_end_its_servers(
    who: Principal, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    alpha, beta, run = serving(who)
    with django_capture_on_commit_callbacks() as callbacks:
        ack = alpha.tell(run, "running", ended(CHIEF), alive(WORKER), alive(SERVER))
    assert woken(callbacks) == ["beta"]
    assert [order.why for order in (*ack.stop, *beta.report().stop)] == ["served", "served"]


def test_ending_them_completes_the_run(who: Principal) -> None:
    alpha, beta, run = serving(who)
    alpha.tell(run, "done", ended(CHIEF), told_to_end(WORKER), told_to_end(SERVER))
    assert state_of(run)[0] == RunState.RUNNING
    beta.tell(run, "done", told_to_end(FAR_WORKER), stopping="served")
    assert state_of(run) == (RunState.COMPLETED, "All ranks finished.")
    assert members(run) == [MemberState.SUCCEEDED] + [MemberState.STOPPED] * 3
    assert held() == []


def test_one_that_breaks_because_its_servers_are_gone_spoils_nothing(who: Principal) -> None:
    alpha, beta, run = serving(who)
    beta.tell(run, "running", ended(FAR_WORKER, 1))
    alpha.tell(run, "done", ended(CHIEF), told_to_end(WORKER), told_to_end(SERVER))
    beta.tell(run, "done")
    assert state_of(run)[0] == RunState.COMPLETED


def test_one_that_breaks_while_the_chief_still_works_fails_the_run(who: Principal) -> None:
    alpha, beta, run = serving(who)
    beta.tell(run, "running", ended(FAR_WORKER, 1))
    assert [order.why for order in alpha.report().stop] == ["gang"]
    alpha.tell(run, "done", *map(told_to_end, (CHIEF, WORKER, SERVER)), stopping="gang")
    beta.tell(run, "done")
    assert state_of(run) == (RunState.FAILED, "Rank 2 exited with code 1 on beta.")


def test_a_chief_that_fails_fails_the_run(who: Principal) -> None:
    alpha, beta, run = serving(who)
    alpha.tell(run, "running", ended(CHIEF, 3), alive(WORKER), alive(SERVER))
    assert [order.why for order in beta.report().stop] == ["gang"]


def test_a_worker_that_ends_well_by_itself_ends_nobody(who: Principal) -> None:
    alpha, beta, run = serving(who)
    beta.tell(run, "done", ended(FAR_WORKER))
    assert (alpha.report().stop, state_of(run)[0]) == ((), RunState.RUNNING)

"""An MPI daemon for another node is taken from the head, once, while the attempt starts; everything else is
not heeded."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks

from jobs.models import AttemptNode, Run
from jobs.scheduling import run_actions
from tests.jobs.builders import Played, alive, both_running, ended, two_nodes
from tests.jobs.gangs import woken
from trainhub_launch.report import AttemptFact, DaemonCall
from trainhub_launch.states import Phase
from workspaces import process_caches
from workspaces.access import Principal

pytestmark = pytest.mark.django_db
ARGV = ("orted", "-mca", "ess", "env", "-mca", "orte_hnp_uri", "1.0;tcp://10.0.0.1:40001")
BETA = "10.0.0.2"
MPI = {"type": "mpi", "process_count_per_node": 1, "node_count": 2}


def started(who: Principal) -> tuple[Played, Played, Run]:
    """The head runs its mpirun, the other node waits for its daemon."""
    alpha, beta, run = two_nodes(who, distribution=MPI)
    for played in (alpha, beta):
        played.ready(run)
    for played in (alpha, beta):
        played.claim(run)
    return alpha, beta, run


def call(head: Played, run: Run, *calls: DaemonCall, phase: str = "running") -> None:
    head.tell(run, phase, alive(0), daemons=calls)


def daemon_of(name: str) -> list[str]:
    return list(AttemptNode.objects.get(node__name=name).daemon)


def test_the_heads_call_reaches_the_node_it_names_and_wakes_it(
    who: Principal, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    alpha, beta, run = started(who)
    with django_capture_on_commit_callbacks() as callbacks:
        call(alpha, run, DaemonCall(BETA, ARGV))
    assert woken(callbacks) == ["beta"]
    assert [beta.report().daemons, beta.report().daemons] == [((run.pk, 1, ARGV),)] * 2
    assert alpha.report().daemons == ()


def test_it_is_not_repeated_to_a_node_whose_ranks_run(who: Principal) -> None:
    alpha, beta, run = started(who)
    call(alpha, run, DaemonCall(BETA, ARGV))
    assert beta.tell(run, "running", alive(1)).daemons == ()


def test_the_first_call_holds(
    who: Principal, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    alpha, _, run = started(who)
    call(alpha, run, DaemonCall(BETA, ARGV), DaemonCall(BETA, ("orted", "second")))
    with django_capture_on_commit_callbacks() as callbacks:
        call(alpha, run, DaemonCall(BETA, ("orted", "third")))
        process_caches.clear_all()
        alpha.report()
    assert (daemon_of("beta"), woken(callbacks)) == (list(ARGV), [])


@pytest.mark.parametrize(
    "forged",
    [
        DaemonCall("10.0.0.3", ARGV),
        DaemonCall("10.0.0.1", ARGV),
        DaemonCall("beta", ARGV),
        DaemonCall("", ARGV),
        DaemonCall(BETA, ()),
        DaemonCall(BETA, ("/bin/sh", "-c", "id")),
        DaemonCall(BETA, ("orted", "a\0b")),
        DaemonCall(BETA, ("orted",) * 300),
        DaemonCall(BETA, ("orted", "x" * 70_000)),
    ],
)
def test_a_host_of_no_other_node_of_the_run_or_words_of_no_daemon_change_nothing(
    forged: DaemonCall, who: Principal, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    alpha, _, run = started(who)
    with django_capture_on_commit_callbacks() as callbacks:
        call(alpha, run, forged)
    assert not AttemptNode.objects.exclude(daemon=[]).exists()
    assert woken(callbacks) == []


def test_another_node_than_the_head_cannot_call(who: Principal) -> None:
    _, beta, run = started(who)
    beta.tell(run, "ready", daemons=(DaemonCall("10.0.0.1", ARGV), DaemonCall(BETA, ARGV)))
    assert not AttemptNode.objects.exclude(daemon=[]).exists()


def test_a_call_before_the_final_order_changes_nothing(who: Principal) -> None:
    alpha, beta, run = two_nodes(who, distribution=MPI)
    alpha.ready(run, daemons=(DaemonCall(BETA, ARGV),))
    beta.claim(run)
    assert daemon_of("beta") == []


def test_nor_does_one_of_a_run_that_uses_no_mpi(who: Principal) -> None:
    alpha, _, run = both_running(who)
    call(alpha, run, DaemonCall(BETA, ARGV))
    assert daemon_of("beta") == []


@pytest.mark.parametrize("late", ["its ranks run already", "it has failed", "it is being canceled"])
def test_nor_one_that_comes_late(late: str, who: Principal) -> None:
    alpha, beta, run = started(who)
    if late == "its ranks run already":
        beta.tell(run, "running", alive(1))
    elif late == "it has failed":
        beta.tell(run, "done", error="No orted here.", error_kind="launch")
    else:
        run_actions.cancel(run, who.user)
    call(alpha, run, DaemonCall(BETA, ARGV))
    assert daemon_of("beta") == []


def test_nor_one_of_an_attempt_that_is_over(who: Principal) -> None:
    alpha, beta, run = started(who)
    fact = alpha.facts[(run.pk, 1)]
    alpha.tell(run, "done", ended(0, 1))
    beta.tell(run, "done", stopping="gang")
    late: AttemptFact = replace(fact, phase=Phase.RUNNING, daemons=(DaemonCall(BETA, ARGV),))
    alpha.facts[(run.pk, 1)] = late
    alpha.report()
    assert daemon_of("beta") == []


def test_a_gang_that_fails_is_told_to_stop_and_not_to_start_its_daemon(who: Principal) -> None:
    alpha, beta, run = started(who)
    call(alpha, run, DaemonCall(BETA, ARGV))
    alpha.tell(run, "running", ended(0, 1))
    ack = beta.report()
    assert (ack.daemons, [order.why for order in ack.stop]) == ((), ["gang"])

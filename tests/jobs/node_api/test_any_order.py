"""Whatever order the words of two nodes come in, and however often: the attempt comes to the same end,
once."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from jobs.models import AttemptNode, Member, Run
from jobs.node_api import claims
from jobs.recovery import node_loss, reaper
from jobs.states import MemberState, RunState
from tests.jobs.builders import Played, alive, ended, launched, node, processes
from tests.jobs.gangs import held, state_of, told
from trainhub_launch.report import Ack, AttemptFact
from trainhub_launch.states import PHASES
from workspaces import process_caches
from workspaces.access import Principal

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
ACTS = ("claim", "step", "step", "repeat", "late", "forget", "tick")


@dataclass
class Simulated(Played):
    """A node that lives through one attempt: it does nothing that it has no order for, and ends when told
    to."""

    rank: int = 0
    code: int = 0
    may_start: bool = False
    phase: str = ""
    past: list[AttemptFact] = field(default_factory=list)

    def act(self, run: Run, act: str) -> None:
        if act == "claim":
            self.ask(run)
        elif act == "step":
            self.step(run)
        elif act == "forget":
            process_caches.clear_all()
        elif act == "tick":
            node_loss.check_silent_nodes()
            reaper.check_runs()
        elif self.phase:
            now = self.facts.get((run.pk, 1))
            if act == "late" and now is not None and self.past:
                self.facts[(run.pk, 1)] = self.past[0]
                self.obey(run, self.report())
                self.facts[(run.pk, 1)] = now
            self.obey(run, self.report())

    def ask(self, run: Run) -> None:
        if self.phase == "done":
            return
        try:
            order = self.claim(run)
        except claims.Refused:
            return
        self.may_start = self.may_start or order.go
        self.phase = self.phase or "accepted"

    def step(self, run: Run) -> None:
        if self.phase == "accepted":
            self.enter(run, "preparing")
        elif self.phase == "preparing":
            self.enter(run, "ready")
        elif self.phase == "ready" and self.may_start:
            self.enter(run, "running")
        elif self.phase == "running":
            self.enter(run, "done")

    def enter(self, run: Run, phase: str, *, stopped: bool = False) -> None:
        began = self.phase == "running"
        self.phase = phase
        if phase == "running":
            ack = self.tell(run, phase, alive(self.rank))
        elif phase == "done" and stopped:
            ends = (ended(self.rank, None, signal=15, ended_by_us=True),) if began else ()
            ack = self.tell(run, phase, *ends, stopping="gang")
        elif phase == "done":
            ack = self.tell(run, phase, ended(self.rank, self.code))
        else:
            ack = self.tell(run, phase, ports=(6105,) if phase == "ready" else ())
        self.past += [self.facts[(run.pk, 1)]] if (run.pk, 1) in self.facts else []
        self.obey(run, ack)

    def obey(self, run: Run, ack: Ack) -> None:
        if ack.stop and self.phase not in ("", "done"):
            self.enter(run, "done", stopped=True)
        elif ack.start and not self.may_start:
            self.ask(run)


def played_out(who: Principal, acts: list[tuple[int, str]], codes: tuple[int, int]) -> Run:
    """The run after these acts, and after whatever was left to do."""
    process_caches.clear_all()
    nodes = [
        Simulated(node(name), nonce=nonce * 32, rank=rank, code=code)
        for rank, (name, nonce, code) in enumerate(zip(("alpha", "beta"), "ab", codes, strict=True))
    ]
    run = launched(who, distribution={**processes(2), "node_count": 2})
    for number, act in acts:
        nodes[number].act(run, act)
    for _ in range(len(PHASES) + 2):
        for one in nodes:
            one.act(run, "claim")
            one.act(run, "step")
            one.act(run, "repeat")
    return run


orders = st.lists(st.tuples(st.integers(0, 1), st.sampled_from(ACTS)), max_size=40)
quietly = settings(
    max_examples=20,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@quietly
@given(acts=orders)
def test_two_nodes_that_do_well_complete_the_run(who: Principal, acts: list[tuple[int, str]]) -> None:
    with transaction.atomic():
        run = played_out(who, acts, (0, 0))
        assert state_of(run) == (RunState.COMPLETED, "All ranks finished.")
        assert set(Member.objects.values_list("state", flat=True)) == {MemberState.SUCCEEDED}
        assert list(run.events.exclude(to_state="").values_list("to_state", flat=True)) == [
            "Queued",
            "Provisioning",
            "Preparing",
            "Running",
            "Finalizing",
            "Completed",
        ]
        assert told(run).count("All 2 nodes are ready; their ranks start.") == 1
        assert held() == []
        assert not AttemptNode.objects.filter(settled_at=None).exists()
        transaction.set_rollback(True)


@quietly
@given(acts=orders, failing=st.integers(0, 1))
def test_a_rank_that_fails_is_the_reason_whatever_came_first(
    who: Principal, acts: list[tuple[int, str]], failing: int
) -> None:
    with transaction.atomic():
        codes = (3, 0) if failing == 0 else (0, 3)
        run = played_out(who, acts, codes)
        name = ("alpha", "beta")[failing]
        assert state_of(run) == (RunState.FAILED, f"Rank {failing} exited with code 3 on {name}.")
        states = list(Member.objects.order_by("rank").values_list("state", flat=True))
        assert states[failing] == MemberState.FAILED
        assert states[1 - failing] in (MemberState.SUCCEEDED, MemberState.STOPPED)
        assert held() == []
        transaction.set_rollback(True)

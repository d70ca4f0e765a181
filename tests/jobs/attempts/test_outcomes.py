from __future__ import annotations

from typing import Any

import pytest

from jobs.causes.evidence import RankEvidence
from jobs.outcomes import NodePart, RunVerdict, derive, member_state, rank_failure
from jobs.states import MemberState, Reason, RunState
from trainhub_launch.report import AttemptFact, MemberFact
from trainhub_launch.states import Phase, RankState


def part(
    phase: str,
    *members: MemberFact,
    node: str = "alpha",
    rank: int = 0,
    serving: tuple[int, ...] = (),
    **more: Any,
) -> NodePart:
    fact = AttemptFact("r", 1, Phase(phase), members=members, **more)
    decides = {member.rank: member.rank not in serving for member in members}
    return NodePart(node=node, node_rank=rank, fact=fact, decides=decides)


def silent(node: str = "beta", rank: int = 1) -> NodePart:
    return NodePart(node=node, node_rank=rank, fact=None, decides={})


def ended(rank: int, code: int | None = 0, at: float = 100.0, **more: Any) -> MemberFact:
    return MemberFact(rank, RankState.ENDED, exit_code=code, ended_at=at, **more)


def stopped(rank: int, at: float = 101.0) -> MemberFact:
    return MemberFact(rank, RankState.ENDED, signal=15, ended_at=at, ended_by_us=True)


def why(verdict: RunVerdict) -> str:
    return verdict.reason.sentence(**verdict.facts)


class TestState:
    @pytest.mark.parametrize(
        ("phases", "state"),
        [
            (["accepted"], RunState.PREPARING),
            (["preparing"], RunState.PREPARING),
            (["running"], RunState.RUNNING),
            (["uploading"], RunState.FINALIZING),
            (["preparing", "running"], RunState.RUNNING),
            (["running", "done"], RunState.RUNNING),
            (["uploading", "done"], RunState.FINALIZING),
        ],
    )
    def test_follows_the_nodes_phases(self, phases: list[str], state: RunState) -> None:
        parts = [part(phase, rank=rank) for rank, phase in enumerate(phases)]
        assert derive(parts) == RunVerdict(state)

    def test_one_node_that_has_said_nothing_keeps_the_run_open(self) -> None:
        assert derive([part("done", ended(0)), silent()]).reason is Reason.NONE


class TestOutcome:
    def test_all_ranks_that_succeed_complete_the_run(self) -> None:
        verdict = derive([part("done", ended(0), ended(1))])
        assert (verdict.state, why(verdict)) == (RunState.COMPLETED, "All ranks finished.")

    def test_the_first_rank_to_fail_is_named_not_those_we_ended(self) -> None:
        verdict = derive(
            [part("done", stopped(0, at=90.0), ended(1, 3, at=100.0), ended(2, 1, at=99.0), stopped(3))]
        )
        assert why(verdict) == "Rank 2 exited with code 1 on alpha."

    def test_the_first_to_fail_is_found_across_nodes(self) -> None:
        verdict = derive(
            [part("done", ended(0, 1, at=50.2)), part("done", ended(1, 7, at=50.1), node="beta", rank=1)]
        )
        assert why(verdict) == "Rank 1 exited with code 7 on beta."

    def test_a_signal_is_named(self) -> None:
        verdict = derive([part("done", MemberFact(0, RankState.ENDED, signal=11, ended_at=1.0))])
        assert why(verdict) == "Rank 0 was killed by SIGSEGV on alpha."

    def test_a_bare_sigkill_is_not_called_lack_of_memory(self) -> None:
        verdict = derive([part("done", MemberFact(0, RankState.ENDED, signal=9, ended_at=1.0))])
        assert verdict.reason is Reason.SIGNALED

    def test_lack_of_memory_needs_evidence(self) -> None:
        verdict = derive(
            [part("done", MemberFact(0, RankState.ENDED, signal=9, ended_at=1.0, out_of_memory=True))]
        )
        assert verdict.reason is Reason.OUT_OF_MEMORY

    def test_parameter_servers_that_we_ended_count_as_success(self) -> None:
        verdict = derive([part("done", ended(0), stopped(1), stopped(2), serving=(1, 2))])
        assert verdict.reason is Reason.COMPLETED

    def test_a_parameter_server_that_dies_by_itself_fails_the_run(self) -> None:
        verdict = derive([part("done", stopped(0), ended(1, 2), serving=(1,))])
        assert why(verdict) == "Rank 1 exited with code 2 on alpha."

    def test_a_cancel_wins_over_what_its_signals_did(self) -> None:
        verdict = derive([part("done", ended(0, 143), stopping="canceled")], canceled_by="carl")
        assert (verdict.state, why(verdict)) == (RunState.CANCELED, "Canceled by carl.")

    def test_the_time_limit_is_named(self) -> None:
        verdict = derive([part("done", stopped(0), stopping="timeout")], timeout_s=60)
        assert why(verdict) == "Stopped after its time limit of 60 s."

    @pytest.mark.parametrize(
        ("kind", "reason"),
        [
            ("environment", Reason.ENVIRONMENT_FAILED),
            ("snapshot", Reason.SNAPSHOT_FAILED),
            ("launch", Reason.LAUNCH_FAILED),
            ("internal", Reason.NODE_ERROR),
            ("upload", Reason.UPLOAD_FAILED),
            ("disk_limit", Reason.DISK_LIMIT),
            ("disk_full", Reason.DISK_FULL),
        ],
    )
    def test_an_error_of_the_node_has_its_reason(self, kind: str, reason: Reason) -> None:
        verdict = derive([part("done", error="No space left on device.", error_kind=kind)])
        assert verdict.reason is reason
        assert "No space left on device." in why(verdict)

    def test_a_failed_rank_outranks_outputs_that_could_not_be_saved(self) -> None:
        verdict = derive([part("done", ended(0, 1), error="Disk full.", error_kind="upload")])
        assert verdict.reason is Reason.EXITED

    def test_an_orphan_is_not_called_a_success(self) -> None:
        assert derive([part("done", stopped(0), stopping="orphan")]).reason is Reason.ORPHANED

    def test_a_stop_at_the_node_itself_is_a_cancel_by_that_node(self) -> None:
        verdict = derive([part("done", stopped(0), stopping="canceled")])
        assert (verdict.state, why(verdict)) == (RunState.CANCELED, "Canceled by node alpha.")

    def test_a_rank_without_an_end_is_not_called_a_success(self) -> None:
        verdict = derive([part("done", MemberFact(0, RankState.WAITING))])
        assert verdict.reason is Reason.LAUNCH_FAILED


class TestGang:
    def test_a_rank_that_failed_ends_the_others_before_their_nodes_are_done(self) -> None:
        failed = part("running", ended(0, 1), MemberFact(1, RankState.RUNNING))
        verdict = derive([failed, part("running", MemberFact(2, RankState.RUNNING), node="beta", rank=1)])
        assert verdict == RunVerdict(RunState.RUNNING, failing=True)

    def test_a_rank_that_finished_early_ends_nobody(self) -> None:
        assert not derive([part("running", ended(0), MemberFact(1, RankState.RUNNING))]).failing


def test_a_member_that_succeeded_before_our_signal_succeeded() -> None:
    assert member_state(ended(0, 0, ended_by_us=True)) is MemberState.SUCCEEDED


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"exit_code": 3}, "Rank 2 exited with code 3 on alpha."),
        ({"signal": 9}, "Rank 2 was killed by SIGKILL on alpha."),
        ({"signal": 40}, "Rank 2 was killed by signal 40 on alpha."),
        ({"signal": 9, "out_of_memory": True}, "memory"),
    ],
)
def test_a_nodes_report_and_a_stored_rank_give_one_reason(how: dict[str, Any], sentence: str) -> None:
    reported = rank_failure(MemberFact(2, RankState.ENDED, **how), "alpha")
    stored = rank_failure(RankEvidence(2, 0, "alpha", "log.txt", MemberState.FAILED, **how), "alpha")
    assert reported == stored
    reason, facts = reported
    assert sentence in reason.sentence(**facts)

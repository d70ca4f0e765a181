"""From facts and logs to the cause that a run keeps: who of its ranks, and what becomes of it later."""

from __future__ import annotations

import json
from signal import SIGKILL, SIGSEGV

import pytest

from jobs import causes
from jobs.causes import Cause, log_reading
from jobs.causes.cause_selection import group_reasons
from jobs.logs import log_removal
from jobs.models import Attempt, Run
from jobs.states import Reason, RunState
from jobs.tokens import attempt_token
from tests.jobs.builders import Played, alive, ended, launched, node, processes
from trainhub_launch.report import MemberFact
from workspaces.access import Principal

pytestmark = pytest.mark.django_db
RAISED = (
    b'Traceback (most recent call last):\n  File "train.py", line 3\n    boom()\nValueError: shard 1 '
    b"is empty\n"
)
LOST = RAISED.replace(
    b"ValueError: shard 1 is empty", b"RuntimeError: Connection closed by peer [10.0.0.2]:41"
)


def log_name(rank: int) -> str:
    return f"70_driver_log_{rank}.txt"


def started(who: Principal, count: int = 2, **spec: object) -> tuple[Played, Run]:
    alpha = Played(node("alpha", slots=2 * count))
    run = launched(who, distribution=processes(count), **spec)
    alpha.claim(run)
    alpha.tell(run, "running", *(alive(rank) for rank in range(count)))
    return alpha, run


def failed(
    who: Principal, logs: dict[int, bytes], *members: MemberFact, count: int = 2, **spec: object
) -> Run:
    alpha, run = started(who, count, **spec)
    for rank, text in logs.items():
        alpha.log(run, log_name(rank), 0, text)
    alpha.tell(run, "done", *members)
    run.refresh_from_db()
    return run


def cause(run: Run) -> Cause:
    found = causes.find_cause(run.pk, run.attempt)
    assert found is not None
    return found


class TestChoice:
    def test_who_raised_stands_before_who_lost_its_connection_earlier(self, who: Principal) -> None:
        run = failed(who, {0: LOST, 1: RAISED}, ended(0, 1, at=1000.0), ended(1, 1, at=1003.0))
        found = cause(run)
        assert (found.rank, found.node, found.exception) == (1, "alpha", "ValueError: shard 1 is empty")
        assert [(other.rank, other.why) for other in found.others] == [(0, "lost its connection")]
        assert (found.log, found.offset) == (log_name(1), 0)

    def test_who_ended_without_a_word_stands_before_who_lost_its_connection(self, who: Principal) -> None:
        found = cause(failed(who, {0: LOST, 1: b"step\n"}, ended(0, 1, at=1000.0), ended(1, 3, at=1003.0)))
        assert (found.rank, found.sentence) == (1, "Rank 1 exited with code 3 on alpha.")

    def test_who_crashed_stands_before_who_lost_its_connection(self, who: Principal) -> None:
        found = cause(
            failed(who, {0: LOST}, ended(0, 1, at=1000.0), ended(1, None, signal=SIGSEGV, at=1003.0))
        )
        assert (found.rank, found.kind) == (1, "segmentation_fault")

    def test_of_two_errors_the_first_by_time(self, who: Principal) -> None:
        found = cause(failed(who, {0: RAISED, 1: RAISED}, ended(0, 1, at=1002.0), ended(1, 1, at=1001.0)))
        assert found.rank == 1
        assert found.others[0].why == "ended with the same error"

    def test_who_raised_and_was_ended_before_it_left_is_the_cause(self, who: Principal) -> None:
        stopped = ended(1, None, signal=15, at=1009.0, ended_by_us=True)
        found = cause(failed(who, {0: LOST, 1: RAISED}, ended(0, 1, at=1000.0), stopped))
        assert (found.rank, found.is_certain) == (1, True)
        assert (
            found.sentence
            == "Rank 1 raised an error on alpha; TrainHub stopped it with the others before it had exited."
        )

    def test_where_all_only_lost_each_other_the_first_is_named_and_the_doubt_is_said(
        self, who: Principal
    ) -> None:
        found = cause(failed(who, {0: LOST, 1: LOST}, ended(0, 1, at=1002.0), ended(1, 1, at=1001.0)))
        assert (found.rank, found.is_certain, found.kind) == (1, False, "peer_lost")
        assert "No rank reported an error of its own" in found.sentence

    def test_a_rank_alone_is_never_in_doubt(self, who: Principal) -> None:
        alpha = Played(node("alpha"))
        run = launched(who)
        alpha.claim(run)
        alpha.log(run, "70_driver_log.txt", 0, LOST)
        alpha.tell(run, "done", ended(0, 1))
        run.refresh_from_db()
        assert cause(run).is_certain

    def test_a_kill_with_the_kernel_s_word_is_lack_of_memory_and_one_without_probably_so(
        self, who: Principal
    ) -> None:
        starved = ended(1, None, signal=SIGKILL, out_of_memory=True)
        assert cause(failed(who, {}, ended(0, 0), starved)).kind == "out_of_memory"

    def test_a_bare_kill_is_told_as_what_it_probably_is(self, who: Principal) -> None:
        found = cause(failed(who, {1: RAISED + b"step\n" * 30}, ended(0, 0), ended(1, None, signal=SIGKILL)))
        assert (found.kind, found.exception) == ("killed", "")
        assert "does not record who else sent the signal" in found.meaning
        assert found.is_certain

    def test_only_the_end_of_a_long_log_is_read(self, who: Principal) -> None:
        filler = b"x" * 99 + b"\n"
        text = RAISED + filler * 4000 + RAISED.replace(b"shard 1", b"shard 2")
        found = cause(failed(who, {1: text}, ended(0, 0), ended(1, 1)))
        assert found.exception == "ValueError: shard 2 is empty"
        assert found.offset == len(RAISED) + 4000 * 100
        assert len(text) > log_reading.LONG_TAIL_BYTES


class TestWithoutARank:
    def test_a_run_that_hung_until_its_time_limit_says_so(self, who: Principal) -> None:
        alpha, run = started(who, limits={"timeout_s": 4})
        alpha.log(run, log_name(0), 0, b"epoch 1\n")
        stopped = [ended(rank, None, signal=15, ended_by_us=True) for rank in (0, 1)]
        alpha.tell(run, "done", *stopped, stopping="timeout")
        run.refresh_from_db()
        found = cause(run)
        assert (found.rank, found.sentence, found.kind) == (None, "Stopped after its time limit of 4 s.", "")

    def test_a_rank_that_raised_and_could_not_leave_explains_the_time_limit(self, who: Principal) -> None:
        alpha, run = started(who, limits={"timeout_s": 4})
        alpha.log(run, log_name(1), 0, RAISED)
        stopped = [ended(rank, None, signal=15, ended_by_us=True) for rank in (0, 1)]
        alpha.tell(run, "done", *stopped, stopping="timeout")
        run.refresh_from_db()
        assert (cause(run).rank, cause(run).exception) == (1, "ValueError: shard 1 is empty")

    def test_an_environment_that_cannot_be_built_quotes_its_log(self, who: Principal) -> None:
        alpha = Played(node("alpha"))
        run = launched(who)
        alpha.claim(run)
        said = b"ERROR: No matching distribution found for torch==99\n"
        alpha.log(run, "20_environment_build_log.txt", 0, said)
        alpha.tell(run, "done", error="pip failed", error_kind="environment")
        run.refresh_from_db()
        found = cause(run)
        assert (found.rank, found.kind, found.log) == (
            None,
            "package_not_found",
            "20_environment_build_log.txt",
        )

    def test_runs_that_did_not_fail_have_none(self, who: Principal) -> None:
        assert causes.find_cause(failed(who, {}, ended(0), ended(1)).pk, 1) is None


class TestKeeping:
    def test_the_cause_is_known_while_the_others_are_still_being_ended(self, who: Principal) -> None:
        alpha, run = started(who)
        alpha.log(run, log_name(1), 0, RAISED)
        alpha.tell(run, "running", alive(0), ended(1, 1))
        run.refresh_from_db()
        assert run.state == RunState.RUNNING
        found = causes.for_run(run)
        assert found is not None
        assert (found.rank, found.others[0].why) == (1, "is still ending")

    def test_the_reason_of_the_run_names_the_rank_that_is_the_cause(self, who: Principal) -> None:
        run = failed(who, {0: LOST, 1: RAISED}, ended(0, 1, at=1000.0), ended(1, 7, at=1003.0))
        assert run.facts["rank"] == 0
        causes.store_cause(run.pk, 1)
        run.refresh_from_db()
        assert (run.reason, run.sentence) == (Reason.EXITED, "Rank 1 exited with code 7 on alpha.")
        assert (
            # An exception ends Python with 1, not with 7: something else may have happened after it.
            "The cause: Perhaps rank 1 on alpha: ValueError"
            in run.events.order_by("id").values_list("message", flat=True)[::-1][0]
        )

    def test_it_is_stored_where_a_fact_tells_of_the_failure(
        self, who: Principal, django_capture_on_commit_callbacks: pytest.FixtureRequest
    ) -> None:
        alpha, run = started(who)
        alpha.log(run, log_name(1), 0, RAISED)
        with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
            alpha.tell(run, "running", alive(0), ended(1, 1))
        assert (Attempt.objects.get(run=run).cause or {})["rank"] == 1
        listed = causes.annotate_lines(Run.objects.for_workspace(who.workspace)).get(pk=run.pk)
        assert listed.cause_line == "Rank 1 on alpha: ValueError: shard 1 is empty"

    def test_a_canceled_run_has_no_cause(self, who: Principal) -> None:
        run = failed(who, {1: RAISED}, ended(0, 1), ended(1, 1))
        assert causes.store_cause(run.pk, 1) is not None
        Run.objects.filter(pk=run.pk).update(state=RunState.CANCELED)
        run.refresh_from_db()
        assert causes.for_run(run) is None

    def test_the_run_s_token_is_not_quoted(self, who: Principal) -> None:
        alpha, run = started(who)
        token = attempt_token(run.pk, 1)
        alpha.log(run, log_name(1), 0, RAISED.replace(b"shard 1", token.encode()))
        alpha.tell(run, "done", ended(0), ended(1, 1))
        assert token not in json.dumps(cause(run).to_json())

    def test_what_is_stored_is_read_back_as_it_was(self, who: Principal) -> None:
        found = cause(failed(who, {0: LOST, 1: RAISED}, ended(0, 1), ended(1, 1)))
        assert Cause.from_json(json.loads(json.dumps(found.to_json()))) == found

    def test_a_missing_log_is_no_trouble(self, who: Principal) -> None:
        run = failed(who, {}, ended(0, 0), ended(1, 2))
        log_removal.remove_run(run.pk)
        assert cause(run).quote == ""


def test_ranks_are_grouped_by_why_they_ended() -> None:
    assert group_reasons([(0, "a"), (1, "b"), (2, "a"), (3, "a"), (4, "a"), (6, "a")]) == [
        ("a", "0, 2–4, 6"),
        ("b", "1"),
    ]

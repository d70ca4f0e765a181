"""The rank that is to blame is named: when several fail at once, when it reports nothing, and when its error
is hard to find in its log."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from itertools import product
from signal import SIGTERM
from typing import Any

import pytest
from django.utils import timezone

from jobs import causes
from jobs.causes import Cause, log_reading
from jobs.logs import log_store, log_timestamps
from jobs.models import Run, RunEvent
from jobs.states import RunState
from tests.jobs.builders import ended
from tests.jobs.causes.corpus.capture import LOGS
from tests.jobs.causes.test_causes import RAISED, cause, failed, log_name, started
from tests.people import client_of
from workspaces.access import Principal

pytestmark = pytest.mark.django_db
OUT_OF_MEMORY = RAISED.replace(b"ValueError: shard 1 is empty", b"RuntimeError: CUDA out of memory. Tried to")
GONE = RAISED.replace(b"ValueError: shard 1 is empty", b"ConnectionError: a rank has gone")
WAITED = RAISED.replace(
    b"ValueError: shard 1 is empty",
    b"RuntimeError: [Rank 0]: Ranks 2 failed to pass monitoredBarrier in 3000 ms",
)
TIMED_OUT = RAISED.replace(
    b"ValueError: shard 1 is empty",
    b"RuntimeError: Timed out waiting 4000ms for recv operation to complete",
)
FILLER = b"step 1 of 2, loss 0.5\n"


class TestSeveralFailures:
    @pytest.mark.parametrize(
        ("first", "own", "signals"), list(product((0, 1), (OUT_OF_MEMORY, RAISED), ((), (SIGTERM,))))[:11]
    )
    def test_who_lost_a_peer_is_never_to_blame_for_the_other_one_s_error(
        self, who: Principal, first: int, own: bytes, signals: tuple[int, ...]
    ) -> None:
        """Both ranks ended between two looks of the node, in this order and the other one."""
        ends = [ended(0, 1, at=1000.0 + (first == 1)), ended(1, 1, at=1000.0 + (first == 0))]
        if signals:
            ends[0] = ended(0, None, signal=SIGTERM, at=1001.0, ended_by_us=True)
        run = failed(who, {0: GONE, 1: own}, *ends)
        assert (cause(run).rank, cause(run).is_certain) == (1, True)

    def test_a_known_cause_stands_before_an_unknown_one_that_ended_earlier(self, who: Principal) -> None:
        run = failed(who, {0: RAISED, 1: OUT_OF_MEMORY}, ended(0, 1, at=1000.0), ended(1, 1, at=1001.0))
        assert (cause(run).rank, cause(run).kind) == (1, "cuda_out_of_memory")

    def test_ranks_with_the_same_error_are_named_together(self, who: Principal) -> None:
        logs = dict.fromkeys(range(3), OUT_OF_MEMORY)
        run = failed(who, logs, *(ended(rank, 1, at=1000.0 + rank) for rank in range(3)), count=3)
        assert cause(run).line == "Ranks 0–2: RuntimeError: CUDA out of memory. Tried to"
        assert cause(run).sentence.endswith("Ranks 1, 2 ended with the same error.")

    def test_words_that_differ_are_those_of_the_known_failure(self, who: Principal) -> None:
        logs = {rank: OUT_OF_MEMORY + f" allocate on GPU {rank}".encode() for rank in range(2)}
        logs = {rank: text.replace(b". Tried to\n", b". Tried to") for rank, text in logs.items()}
        run = failed(who, logs, ended(0, 1, at=1000.0), ended(1, 1, at=1001.0))
        assert cause(run).line == "Ranks 0, 1: CUDA out of memory"

    def test_the_earlier_traceback_is_the_cause_where_both_ended_at_once(self, who: Principal) -> None:
        alpha, run = started(who)
        alpha.log(run, log_name(1), 0, RAISED)
        time.sleep(0.3)
        alpha.log(run, log_name(0), 0, RAISED.replace(b"shard 1", b"shard 0"))
        later = time.time() + 9
        alpha.tell(run, "done", ended(0, 1, at=later), ended(1, 1, at=later))
        run.refresh_from_db()
        assert cause(run).rank == 1


class TestAbsentRank:
    def test_who_ended_too_early_is_named_with_doubt(self, who: Principal) -> None:
        lost = (LOGS / "gloo_peer_ends_early" / "0.txt").read_bytes()
        run = failed(who, {0: lost, 1: b"done\n"}, ended(0, 1, at=1001.0), ended(1, 0, at=1000.0))
        culprit = cause(run)
        assert (culprit.rank, culprit.kind, culprit.is_certain) == (1, "left_early", False)
        assert culprit.sentence == (
            "Rank 1 on alpha ended with exit code 0 while other ranks still needed it; rank 0 then lost its "
            "connection."
        )
        assert culprit.quote == "done"
        assert [(other.rank, other.why) for other in culprit.others] == [(0, "lost its connection")]

    def test_who_succeeded_after_the_failure_is_not(self, who: Principal) -> None:
        run = failed(who, {0: GONE}, ended(0, 1, at=1000.0), ended(1, 0, at=1001.0))
        assert cause(run).rank == 0

    def test_who_did_not_reach_the_barrier_is_named_by_the_log(self, who: Principal) -> None:
        stopped = [ended(rank, None, signal=SIGTERM, ended_by_us=True) for rank in (1, 2)]
        run = failed(who, {0: WAITED, 2: b"shuffling\n"}, ended(0, 1, at=1000.0), *stopped, count=3)
        assert (cause(run).rank, cause(run).kind, cause(run).quote) == (2, "never_arrived", "shuffling")

    def test_the_only_one_that_did_not_wait_is_named(self, who: Principal) -> None:
        stopped = ended(2, None, signal=SIGTERM, ended_by_us=True)
        logs = {0: TIMED_OUT, 1: TIMED_OUT}
        run = failed(who, logs, ended(0, 1, at=1000.0), ended(1, 1, at=1000.1), stopped, count=3)
        assert (cause(run).rank, cause(run).is_certain) == (2, False)

    def test_of_several_none_is_accused(self, who: Principal) -> None:
        stopped = [ended(rank, None, signal=SIGTERM, ended_by_us=True) for rank in (1, 2)]
        run = failed(who, {0: TIMED_OUT}, ended(0, 1, at=1000.0), *stopped, count=3)
        assert (cause(run).rank, cause(run).kind) == (0, "peer_silent")


class TestHiddenError:
    def test_one_under_much_output_is_found_and_its_doubt_is_said(self, who: Principal) -> None:
        text = FILLER + RAISED + FILLER * 20_000
        assert len(text) > log_reading.LONG_TAIL_BYTES
        culprit = cause(failed(who, {1: text}, ended(0, 0, at=2000.0), ended(1, 1, at=1000.0)))
        assert (culprit.exception, culprit.offset) == ("ValueError: shard 1 is empty", len(FILLER))
        assert not culprit.is_certain
        assert "Much output follows" in culprit.sentence

    def test_one_at_the_border_of_two_pieces_is_found(
        self, who: Principal, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(log_reading, "PIECE_BYTES", 100)
        for after in range(100):
            text = FILLER * 10 + RAISED + b"x" * after + b"\n" + FILLER * 150
            log_store.append("a" * 32, 1, f"log_{after}.txt", 0, text)
            diagnosis = log_reading.diagnose("a" * 32, 1, f"log_{after}.txt", limit=1000, whole_log=True)
            assert diagnosis.exception == "ValueError: shard 1 is empty", after

    def test_one_behind_a_progress_bar_longer_than_the_tail_is_found(self, who: Principal) -> None:
        bar = b"\r 45%|#####     |" * 30_000
        assert len(bar) > log_reading.LONG_TAIL_BYTES
        assert cause(failed(who, {1: bar + RAISED}, ended(0, 0), ended(1, 1))).exception.startswith("ValueE")

    def test_an_exit_code_that_is_not_python_s_makes_it_doubtful(self, who: Principal) -> None:
        culprit = cause(failed(who, {1: RAISED}, ended(0, 0, at=2000.0), ended(1, 3, at=1000.0)))
        assert (culprit.exception, culprit.is_certain) == ("ValueError: shard 1 is empty", False)
        assert "may have handled this one" in culprit.sentence

    def test_of_torchrun_its_process_is_named(self, who: Principal) -> None:
        log = next(path for path in (LOGS / "torchrun_child_raises").glob("0.txt"))
        culprit = cause(failed(who, {1: log.read_bytes()}, ended(0, 0, at=2000.0), ended(1, 1, at=1000.0)))
        assert culprit.where == f"torchrun's rank {culprit.child} on alpha"


class TestHang:
    LIMIT_S = 7200

    def hung(self, who: Principal, outputs: dict[int, tuple[float, ...]]) -> Cause:
        """Returns the cause of a run at its time limit, whose ranks wrote a line at these seconds."""
        alpha, run = started(who, count=3, limits={"timeout_s": self.LIMIT_S})
        began = RunEvent.objects.get(run=run, to_state=RunState.RUNNING).at
        stopped = [ended(rank, None, signal=SIGTERM, ended_by_us=True) for rank in range(3)]
        alpha.tell(run, "done", *stopped, stopping="timeout")
        for rank, moments in outputs.items():
            self.write(run, rank, began, moments)
        Run.objects.filter(pk=run.pk).update(finished_at=began + timedelta(seconds=self.LIMIT_S + 20))
        run.refresh_from_db()
        return cause(run)

    def write(self, run: Run, rank: int, began: datetime, moments: tuple[float, ...]) -> None:
        for index, seconds in enumerate(moments):
            begin, key = index * len(FILLER), (run.pk, 1, log_name(rank))
            log_store.append(*key, begin, FILLER)
            at_ms = round((began.timestamp() + seconds) * 1000)
            log_timestamps.record_arrival(key, begin, begin + len(FILLER), at_ms)
        log_timestamps.flush_attempt(run.pk, 1)

    def test_a_line_about_the_stop_is_no_progress(self, who: Principal) -> None:
        after_stop = self.LIMIT_S + 5.0
        assert self.hung(who, dict.fromkeys(range(3), (10.0, after_stop))).kind == "hung"
        assert self.hung(who, {0: (10.0, self.LIMIT_S - 30.0), 1: (10.0,), 2: (10.0,)}).kind == ""

    def test_who_fell_silent_first_is_named(self, who: Principal) -> None:
        culprit = self.hung(who, {0: (10.0, 300.0), 1: (10.0, 200.0), 2: (10.0, 300.5)})
        assert "Rank 1 on alpha fell silent first, 100 s before the next" in culprit.sentence
        assert "fell silent" not in self.hung(who, dict.fromkeys(range(3), (10.0, 300.0))).sentence


def test_every_place_tells_the_same(who: Principal, capsys: pytest.CaptureFixture[str]) -> None:
    run = failed(who, {0: GONE, 1: OUT_OF_MEMORY}, ended(0, 1, at=1000.0), ended(1, 1, at=1001.0))
    causes.store_cause(run.pk, 1)
    Run.objects.filter(pk=run.pk).update(finished_at=timezone.now())
    client = client_of(who.user)
    line = "Rank 1 on alpha: RuntimeError: CUDA out of memory. Tried to"
    assert line in client.get("/").content.decode()
    assert line in client.get("/runs/").content.decode()
    card = client.get(f"/runs/{run.number}/").content.decode()
    assert "Rank 1 on alpha" in card
    assert "RuntimeError: CUDA out of memory. Tried to" in card
    detail: dict[str, Any] = client.get(f"/api/v1/runs/{run.pk}/").json()
    assert detail["cause_line"] == detail["cause"]["line"] == line
    assert client.get("/api/v1/runs/").json()["results"][0]["cause_line"] == line

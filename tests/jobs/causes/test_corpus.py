"""Logs of ranks that really failed: who is the cause, and as what it is known."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobs.causes.cause_selection import CauseChoice, choose, reason_for
from jobs.causes.evidence import Evidence, RankEvidence, weigh
from jobs.causes.failures import FAILURES
from jobs.causes.log_diagnosis import diagnose_log
from jobs.states import MemberState
from tests.jobs.causes.corpus.capture import CASES, LOGS

INVENTED = sorted((LOGS.parent / "invented").glob("*.txt"))
UNCERTAIN = {
    "gloo_peer_stands_still",
    "gloo_barrier",
    "gloo_peer_ends_early",
    "rendezvous_without_rank_0",
    "rendezvous_without_rank_1",
    "connect_failed",
    "connection_reset",
    "exit_race",
    "torchrun_child_ended_before_it_told",
}
"""Where no rank tells an error of its own."""
NOT_IN_A_LOG = {
    "out_of_memory",
    "hung",
    "left_early",
    "never_arrived",
    "package_not_found",
    "program_not_found",
    "bus_error",
    "arithmetic_fault",
    "export_refused",
}
"""Known by other facts than a rank's log, or tested by themselves."""


def evidence(case: str) -> list[Evidence]:
    folder = LOGS / case
    found = []
    for name, end in json.loads((folder / "ends.json").read_text()).items():
        state = MemberState.STOPPED if end["by_us"] else MemberState.FAILED
        ended = datetime.fromtimestamp(end["at"], UTC)
        rank = RankEvidence(
            int(name), int(name), "alpha", name, state, "", end["exit_code"], end["signal"], ended
        )
        if end["exit_code"] != 0:
            found.append(weigh(rank, diagnose_log((folder / f"{name}.txt").read_bytes(), 0)))
    return found


def choice(case: str) -> CauseChoice:
    chosen = choose(evidence(case))
    assert chosen is not None
    return chosen


@pytest.mark.parametrize("case", CASES)
def test_the_rank_that_failed_first_is_found_with_its_words_and_known(case: str) -> None:
    chosen = choice(case)
    found = chosen.evidence
    kind = found.match.failure.kind if found.match else ""
    assert (found.rank.rank, kind) == (CASES[case].rank, CASES[case].kind)
    assert CASES[case].says in found.diagnosis.exception
    assert chosen.is_certain is (case not in UNCERTAIN)


@pytest.mark.parametrize("case", CASES)
def test_what_is_quoted_stands_at_its_offset_in_the_log(case: str) -> None:
    found = choice(case).evidence
    quote = found.diagnosis.quote
    if quote is None:
        assert not (LOGS / case / f"{found.rank.log}.txt").read_bytes().strip()
        return
    there = (LOGS / case / f"{found.rank.log}.txt").read_bytes()[quote.offset :].decode("utf-8", "replace")
    assert quote.text.splitlines()[0].strip() in there.splitlines()[0]
    assert found.diagnosis.exception.split(": ")[0] in quote.text


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("gloo_peer_raises_of_three", ["lost its connection", "lost its connection"]),
        ("gloo_peer_raises_and_is_last_to_end", ["lost its connection"]),
        ("horovod_peer_raises", ["was shut down by its framework"]),
        ("tensorflow_peer_raises", ["was shut down by its framework"]),
        ("mpi_peer_raises", ["ended by TrainHub", "ended by TrainHub"]),
        ("same_error_everywhere", ["ended with the same error", "ended with the same error"]),
    ],
)
def test_each_of_the_others_ended_for_a_reason(case: str, words: list[str]) -> None:
    found, chosen = evidence(case), choice(case).evidence
    assert [reason_for(item, chosen) for item in found if item.rank != chosen.rank] == words


@pytest.mark.parametrize("log", INVENTED, ids=lambda path: path.stem)
def test_failures_that_need_a_gpu_are_known(log: Path) -> None:
    is_signal = log.stem == "peer_silent"
    rank = RankEvidence(
        0,
        0,
        "alpha",
        "0",
        MemberState.FAILED,
        exit_code=None if is_signal else 1,
        signal=6 if is_signal else None,
    )
    match = weigh(rank, diagnose_log(log.read_bytes(), 0)).match
    assert match is not None
    assert match.failure.kind == log.stem


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("file_not_found", "The script tried to open data/train.csv, which"),
        ("permission_denied", "not allowed to use data/a.csv."),
        ("missing_module", "does not contain the module flash_attn."),
        ("missing_library", "The system library libnvinfer.so.10 is"),
        ("bad_argument", "rejected its arguments: unrecognized arguments: --epoch-count 3."),
        ("script_not_found", "The script /job/code/nothere.py is not"),
    ],
)
def test_what_is_missing_is_called_by_its_name(case: str, words: str) -> None:
    match = choice(case).evidence.match
    assert match is not None
    assert words in match.meaning


def test_every_known_failure_is_met_by_a_log() -> None:
    met = {case.kind for case in CASES.values()} | {log.stem for log in INVENTED}
    by_line = {
        "changed_module",
        "unmatched_builds",
        "interrupted",
        "aborted_with_others",
        "ended_from_outside",
    }
    framework = {
        "framework_shut_down"
    }  # horovod_peer_raises and tensorflow_peer_raises: never the cause there
    assert {row.kind for row in FAILURES} - met - by_line - framework == NOT_IN_A_LOG

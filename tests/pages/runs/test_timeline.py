from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from jobs.states import RunState
from jobs.views.timeline import StateSpan, phases, stretch

START = datetime(2026, 5, 4, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Step:
    at: datetime
    to_state: str
    attempt: int = 1


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


def words(found: tuple[StateSpan, ...]) -> list[tuple[str, float]]:
    return [(phase.word, phase.seconds) for phase in found]


class TestPhases:
    def test_a_finished_run_shows_each_phase_with_its_duration_and_no_final_one(self) -> None:
        steps = [
            Step(at(2), "Provisioning"),
            Step(at(3), "Preparing"),
            Step(at(43), "Running"),
            Step(at(103), "Finalizing"),
            Step(at(105), "Completed"),
        ]
        assert words(phases(START, steps, at(999))) == [
            ("Queued", 2),
            ("Provisioning", 1),
            ("Preparing", 40),
            ("Running", 60),
            ("Finalizing", 2),
        ]

    def test_the_last_phase_of_an_active_run_is_open_and_lasts_until_now(self) -> None:
        last = phases(START, [Step(at(2), "Provisioning"), Step(at(3), "Running")], at(10))[-1]
        assert (last.word, last.seconds, last.is_open) == ("Running", 7, True)

    def test_a_run_just_submitted_is_queued(self) -> None:
        assert words(phases(START, [], at(5))) == [("Queued", 5)]

    def test_a_journal_that_begins_with_queued_does_not_count_it_twice(self) -> None:
        assert words(phases(START, [Step(START, "Queued", 0)], at(5))) == [("Queued", 5)]

    def test_notes_in_the_journal_are_no_phases(self) -> None:
        assert len(phases(START, [Step(at(1), "")], at(5))) == 1

    def test_a_retry_numbers_the_attempts(self) -> None:
        steps = [
            Step(at(1), "Running"),
            Step(at(5), "Queued", 1),
            Step(at(6), "Running", 2),
            Step(at(9), "Failed", 2),
        ]
        assert [phase.attempt for phase in phases(START, steps, at(9))] == [None, 1, 1, 2]

    def test_a_clock_that_runs_backwards_gives_no_negative_time(self) -> None:
        assert words(phases(START, [Step(at(-3), "Running")], at(1)))[0] == ("Queued", 0)

    @pytest.mark.parametrize(
        "state", [state for state in RunState if state not in ("Completed", "Failed", "Canceled")]
    )
    def test_every_state_that_can_last_has_a_phase(self, state: RunState) -> None:
        assert phases(START, [Step(at(1), state)], at(2))[-1].state == state


class TestStretch:
    def test_of_a_run_from_elsewhere_is_one_phase_from_its_beginning_to_its_end(self) -> None:
        assert words(stretch(START, at(60), at(999))) == [("Running", 60)]
        assert not stretch(START, at(60), at(999))[0].is_open

    def test_is_open_while_its_client_has_not_ended_it(self) -> None:
        (found,) = stretch(START, None, at(10))
        assert (found.seconds, found.is_open) == (10, True)

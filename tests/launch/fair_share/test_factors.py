"""Decayed use, factors, and the order of the queue, each by itself."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from trainhub_launch.scheduler.fair_share import (
    START_CHARGE_S,
    Account,
    FairQueue,
    Standing,
    Turn,
    charge,
    decay,
    decayed_span,
    factor,
    standings,
)

DAY = 86400.0
WEEK = 7 * DAY
seconds = st.floats(0, 90 * DAY)
amounts = st.dictionaries(st.sampled_from("abcd"), st.floats(0.001, 1e9), min_size=1)


def turn(
    run: str, workspace: str = "a", person: str = "p", at: float = 0.0, **more: object
) -> Turn[str, str]:
    return replace(Turn(at, run, workspace, person), **more)  # type: ignore[arg-type]


def order(
    *turns: Turn[str, str],
    use: dict[tuple[str, str], float] | None = None,
    shares: dict[str, float] | None = None,
) -> list[str]:
    return [item.run for item in FairQueue(turns).order(use or {}, shares or {})]


class TestDecay:
    @given(seconds, seconds)
    def test_does_not_depend_on_how_often_it_is_looked_at(self, first: float, second: float) -> None:
        once = decay(first + second, WEEK)
        assert math.isclose(once, decay(first, WEEK) * decay(second, WEEK), rel_tol=1e-9)
        looked = Account(1e6, 0.0).plus(0.0, first, WEEK).plus(0.0, first + second, WEEK)
        assert math.isclose(looked.amount, 1e6 * once, rel_tol=1e-9)

    def test_halves_after_a_half_life(self) -> None:
        assert decay(WEEK, WEEK) == 0.5

    def test_a_clock_that_goes_back_changes_nothing(self) -> None:
        account = Account(100.0, 1000.0)
        assert account.at(0.0, WEEK) == 100.0
        assert account.plus(5.0, 0.0, WEEK) == Account(105.0, 1000.0)
        assert decayed_span(1000.0, 2000.0, 500.0, WEEK) == 0.0
        assert charge(1000.0, 1000.0, 500.0, WEEK) == START_CHARGE_S

    @given(seconds, seconds, seconds)
    def test_a_run_is_charged_alike_in_one_piece_and_in_two(self, a: float, b: float, c: float) -> None:
        start, middle, end = sorted((a, b, c))
        pieces = decayed_span(start, middle, end, WEEK) + decayed_span(middle, end, end, WEEK)
        assert math.isclose(decayed_span(start, end, end, WEEK), pieces, rel_tol=1e-6, abs_tol=1e-6)

    def test_a_short_run_just_now_counts_all_its_seconds(self) -> None:
        assert math.isclose(decayed_span(0.0, 60.0, 60.0, WEEK), 60.0, rel_tol=1e-4)


class TestFactors:
    @given(st.floats(0, 1), st.floats(0.001, 1))
    def test_lie_between_0_and_1(self, used: float, share: float) -> None:
        assert 0 <= factor(used, share) <= 1

    def test_are_1_without_use_one_half_at_the_share_and_0_without_a_share(self) -> None:
        assert factor(0.0, 0.3) == 1
        assert factor(0.3, 0.3) == 0.5
        assert factor(0.0, 0.0) == factor(1.0, 0.0) == 0

    @given(amounts, amounts, st.floats(0.01, 100))
    def test_do_not_change_if_all_use_or_all_shares_are_scaled(
        self, use: dict[str, float], shares: dict[str, float], scale: float
    ) -> None:
        plain = standings(use, shares, use)
        for other in (
            standings({name: value * scale for name, value in use.items()}, shares, use),
            standings(use, {name: shares.get(name, 1.0) * scale for name in "abcd"}, use),
        ):
            for name, standing in plain.items():
                assert math.isclose(other[name].factor, standing.factor, rel_tol=1e-6, abs_tol=1e-12)

    @given(amounts, st.floats(1, 1e6))
    def test_fall_with_own_use_and_rise_with_that_of_others(self, use: dict[str, float], more: float) -> None:
        use = {"a": 10.0, "b": 10.0, **use}
        before = standings(use, {}, use)
        after = standings({**use, "a": use["a"] + more}, {}, use)
        assert after["a"].factor <= before["a"].factor
        assert all(after[name].factor >= before[name].factor for name in use if name != "a")

    def test_the_share_of_who_is_not_active_is_lent(self) -> None:
        found = standings({"a": 50.0, "b": 50.0}, {"a": 3.0, "b": 1.0}, ["b"])
        assert found == {"b": Standing(used=0.5, share=1.0)}


class TestOrder:
    def test_priority_comes_before_everything(self) -> None:
        assert order(turn("1"), turn("2", priority=5, at=9.0), turn("3", priority=-1)) == ["2", "1", "3"]

    def test_who_has_used_less_per_share_goes_first(self) -> None:
        turns = turn("1", "a"), turn("2", "b", at=5.0)
        use = {("a", "p"): 1e9, ("b", "p"): 4e8}
        assert order(*turns, use=use) == ["2", "1"]
        assert order(*turns, use=use, shares={"a": 3.0}) == ["1", "2"]

    def test_starts_of_one_walk_count_at_once(self) -> None:
        turns = [turn(f"a{n}", "a", at=n) for n in range(6)] + [
            turn(f"b{n}", "b", at=10 + n) for n in range(2)
        ]
        assert order(*turns, shares={"a": 3.0}) == ["a0", "b0", "a1", "a2", "a3", "b1", "a4", "a5"]

    def test_within_a_workspace_the_people_take_turns(self) -> None:
        turns = [turn(f"p{n}", at=n) for n in range(3)] + [turn("q0", person="q", at=10.0)]
        assert order(*turns) == ["p0", "q0", "p1", "p2"]

    @given(st.permutations([turn(f"{n}", at=n // 2) for n in range(8)]))
    def test_of_one_person_the_oldest_goes_first_and_the_input_does_not_matter(
        self, turns: list[Turn[str, str]]
    ) -> None:
        assert order(*turns) == [str(n) for n in range(8)]

    def test_a_workspace_without_a_share_comes_last(self) -> None:
        use = {("b", "p"): 1e12}
        assert order(turn("1", "a"), turn("2", "b"), use=use, shares={"a": 0.0}) == ["2", "1"]

    def test_who_is_at_the_head_keeps_its_place_until_a_higher_priority_comes(self) -> None:
        head, other = turn("1", "a", claimed_at=7.0), turn("2", "b")
        use = {("a", "p"): 1e9}
        assert order(head, other, use=use) == ["1", "2"]
        assert order(head, other, turn("3", "b", priority=1), use=use) == ["3", "1", "2"]

    def test_a_turn_that_was_removed_is_gone(self) -> None:
        first, second, head = turn("1"), turn("2", at=1.0), turn("3", claimed_at=1.0)
        queue = FairQueue([first, second, head])
        queue.remove(first)
        queue.remove(head)
        assert list(queue.order({}, {})) == [second]

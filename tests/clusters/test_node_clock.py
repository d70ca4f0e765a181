from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from clusters.models import Node
from clusters.node_reports.node_clock import NodeClock

NOW = datetime(2099, 1, 1, tzinfo=UTC)


class ObservedNode:
    """A node with the clock of its session."""

    def __init__(self) -> None:
        self.node, self.clock = Node(pk=1), NodeClock()


def report(observed: ObservedNode, after_s: float, *, behind_s: float, delay_s: float = 0.01) -> float:
    """One report of a node whose clock is that far behind, long on its way; what the hub then takes its clock
    for."""
    come = NOW + timedelta(seconds=after_s)
    observed.clock.observe(observed.node, come.timestamp() - delay_s - behind_s, come)
    return round(observed.node.clock_offset_s, 1)


def test_a_clock_that_is_far_behind_is_found_at_once() -> None:
    assert report(ObservedNode(), 0, behind_s=40) == 40


def test_so_is_one_that_is_ahead() -> None:
    assert report(ObservedNode(), 0, behind_s=-3) == -3


def test_half_a_second_is_nothing() -> None:
    node = ObservedNode()
    assert [report(node, second, behind_s=0.4) for second in range(60)] == [0.0] * 60


def test_reports_that_are_long_on_their_way_do_not_make_a_clock_slow() -> None:
    node = ObservedNode()
    delays = [3.0, 4.0, 0.02, 5.0, 6.0]
    assert [report(node, second * 4, behind_s=0, delay_s=delay) for second, delay in enumerate(delays)] == [
        0.0
    ] * 5


def test_a_few_seconds_behind_are_believed_once_they_last() -> None:
    node = ObservedNode()
    changes = [report(node, second, behind_s=3) for second in range(12)]
    assert (changes[:10], changes[10:]) == ([0.0] * 10, [3.0] * 2)


def test_the_smallest_delay_is_nearest_to_the_truth() -> None:
    node = ObservedNode()
    assert [
        report(node, 0, behind_s=40, delay_s=2),
        report(node, 1, behind_s=40),
        report(node, 2, behind_s=40, delay_s=2),
    ] == [
        42,
        40,
        40,
    ]


def test_a_clock_that_is_set_right_is_right_at_once() -> None:
    node = ObservedNode()
    assert [report(node, 0, behind_s=40), report(node, 1, behind_s=0)] == [40, 0]


def test_one_that_is_set_back_is_found_out_in_time() -> None:
    node = ObservedNode()
    changes = [report(node, second, behind_s=0 if second < 30 else 20) for second in range(120)]
    assert (changes[29], changes[60], changes[119]) == (0, 0, 20)


def test_a_flood_of_reports_is_remembered_by_the_second() -> None:
    node = ObservedNode()
    assert report(node, 0, behind_s=40, delay_s=1) == 41
    assert {report(node, 0.5 + count / 10_000, behind_s=40) for count in range(1000)} == {40}
    assert report(node, 2, behind_s=40, delay_s=5) == 40


@pytest.mark.parametrize("sent_at", [float("nan"), float("inf")])
def test_a_time_that_is_none_says_nothing(sent_at: float) -> None:
    node = ObservedNode()
    assert node.clock.observe(node.node, sent_at, NOW) == 0.0
    assert node.node.clock_offset_s == 0.0

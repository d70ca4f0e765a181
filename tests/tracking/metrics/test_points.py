from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracking.metrics.points import (
    Point,
    Points,
    PointsError,
    block_bytes,
    concatenate,
    group_by_key,
    read_block,
    read_slice,
    slice_bytes,
)

WHOLE = st.integers(-(2**63), 2**63 - 1)
POINTS = st.lists(
    st.builds(Point, st.sampled_from(["loss", "eval/acc", "größe"]), st.floats(width=64), WHOLE, WHOLE),
    min_size=1,
)


def plain_points(points: Points) -> list[tuple[int, int, str]]:
    """Comparable, NaN included."""
    columns = points.step.tolist(), points.ms.tolist(), map(repr, points.value.tolist())
    return list(zip(*columns, strict=True))


class TestSlices:
    @given(POINTS)
    def test_every_point_comes_back_as_it_was(self, points: list[Point]) -> None:
        curves = group_by_key(points)
        result = read_slice(slice_bytes(curves))
        assert {key: plain_points(item) for key, item in result.items()} == {
            key: plain_points(item) for key, item in curves.items()
        }

    def test_one_curve_can_be_read_alone(self) -> None:
        data = slice_bytes(group_by_key([Point("a", 1.0, 0, 5), Point("b", math.inf, 1, 6)]))
        assert list(read_slice(data, "b")) == ["b"]
        assert read_slice(data, "c") == {}

    def test_a_point_takes_few_bytes(self) -> None:
        assert len(slice_bytes(group_by_key([Point("loss", 0.5, 1, 1_700_000_000_000)]))) < 50

    def test_broken_bytes_are_an_error(self) -> None:
        whole = slice_bytes(group_by_key([Point("loss", float(step), step, step) for step in range(500)]))
        for broken in (b"", b"\x09", whole[:-4], whole[:20], bytes([9]) + whole[1:]):
            with pytest.raises(PointsError):
                read_slice(broken)

    def test_fewer_or_more_points_than_it_says_are_an_error(self) -> None:
        plain = slice_bytes(group_by_key([Point("a", 1.0, 0, 5), Point("b", 2.0, 1, 6)]))
        for broken in (plain[:-24], plain + bytes(24)):
            with pytest.raises(PointsError, match="does not hold 2 points of 2 curves"):
                read_slice(broken)


class TestBlocks:
    @given(POINTS)
    def test_every_point_comes_back_as_it_was(self, points: list[Point]) -> None:
        whole = concatenate(group_by_key(points).values())
        assert plain_points(read_block(block_bytes(whole))) == plain_points(whole)

    def test_times_may_be_left_packed(self) -> None:
        points = Points(np.arange(3), np.arange(3) + 10, np.ones(3))
        assert plain_points(read_block(block_bytes(points), ms=False)) == plain_points(
            Points(points.step, np.zeros(3, np.int64), points.value)
        )

    def test_an_even_curve_takes_some_ten_bytes_a_point(self) -> None:
        random = np.random.default_rng(1)
        steps = np.arange(4096)
        points = Points(
            steps, 1_700_000_000_000 + steps * 137, np.exp(-steps / 900) + random.normal(0, 0.01, 4096)
        )
        assert len(block_bytes(points)) < 4096 * 11

    def test_broken_bytes_are_an_error(self) -> None:
        whole = block_bytes(Points(np.arange(300), np.arange(300), np.arange(300.0)))
        for broken in (b"", b"\x09", whole[:-4], whole[:15], bytes([9]) + whole[1:]):
            with pytest.raises(PointsError):
                read_block(broken)

    def test_columns_of_different_lengths_are_an_error(self) -> None:
        """As of a block whose values were cut off before they were packed."""
        points = Points(np.arange(300), np.arange(300), np.arange(299.0))
        with pytest.raises(PointsError, match="does not hold 299 points"):
            read_block(block_bytes(points))

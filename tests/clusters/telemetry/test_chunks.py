from __future__ import annotations

import numpy as np
import pytest

from clusters.telemetry.chunks import (
    Chunk,
    bytes_needed,
    chunk_bytes,
    empty_chunk,
    fill_row,
    likely_bytes_needed,
    open_chunk,
    read_chunk,
    span_s,
)
from clusters.telemetry.slice_codec import PackingError
from trainhub_launch.metrics import GPU_METRICS

START = 1_800_000_000
METRICS = tuple(metric.key for metric in GPU_METRICS)


def noisy(step_s: int = 60, points: int = 180) -> Chunk:
    numbers = np.random.default_rng(7)
    chunk = empty_chunk(START, step_s, points, METRICS)
    chunk.mean[:] = numbers.normal(50, 20, chunk.mean.shape)
    chunk.max[:] = chunk.mean + 1
    chunk.count[:] = step_s // 10
    chunk.mean[:, 5:9], chunk.max[:, 5:9], chunk.count[:, 5:9] = np.nan, np.nan, 0
    return chunk


class TestChunks:
    @pytest.mark.parametrize("step_s", [10, 60, 600])
    def test_what_is_read_is_what_was_stored_number_by_number(self, step_s: int) -> None:
        stored = noisy(step_s)
        read = read_chunk(chunk_bytes(stored), START)
        assert (read.start, read.step_s, read.points, read.metrics) == (START, step_s, 180, METRICS)
        np.testing.assert_array_equal(read.mean, stored.mean)
        np.testing.assert_array_equal(read.max, stored.max)
        np.testing.assert_array_equal(read.count, stored.count)

    @pytest.mark.parametrize("shift", [-200, -180, -50, 0, 20, 150, 180])
    def test_a_metric_fills_its_place_in_a_longer_row(self, shift: int) -> None:
        row = empty_chunk(START + shift * 60, 60, 200, ["power_w", "no_such"])
        packed = open_chunk(chunk_bytes(noisy()), START)
        fill_row(row, 0, packed, "power_w")
        fill_row(row, 1, packed, "no_such")
        alone = noisy().mean[METRICS.index("power_w")]
        expected = [alone[place + shift] if 0 <= place + shift < 180 else np.nan for place in range(200)]
        np.testing.assert_array_equal(row.mean[0], np.array(expected, np.float32))
        assert np.isnan(row.mean[1]).all()
        assert (row.count[0] > 0).sum() == (~np.isnan(row.mean[0])).sum()

    def test_a_chunk_of_another_step_is_refused(self) -> None:
        with pytest.raises(PackingError, match="in steps of 10 s"):
            fill_row(
                empty_chunk(START, 10, 180, ["power_w"]),
                0,
                open_chunk(chunk_bytes(noisy()), START),
                "power_w",
            )

    def test_a_metric_of_which_nothing_is_known_takes_no_room(self) -> None:
        chunk = noisy()
        chunk.count[METRICS.index("fan_pct")] = 0
        assert "fan_pct" not in read_chunk(chunk_bytes(chunk), START).metrics
        assert read_chunk(chunk_bytes(empty_chunk(START, 10, 360, METRICS)), START).metrics == ()

    @pytest.mark.parametrize("metric", METRICS)
    def test_the_beginning_of_a_chunk_is_enough_for_one_metric(self, metric: str) -> None:
        data = chunk_bytes(noisy())
        enough = bytes_needed(data[: likely_bytes_needed(metric)], metric)
        assert enough <= likely_bytes_needed(metric)
        row = empty_chunk(START, 60, 180, [metric])
        fill_row(row, 0, open_chunk(data[:enough], START), metric)
        assert row.count[0].sum() == 176 * 6

    def test_longer_steps_hold_whole_shorter_spans(self) -> None:
        assert [span_s(step) for step in (10, 60, 600)] == [3600, 10800, 172800]

    @pytest.mark.parametrize(
        "data", [b"", b"\x09", b"\x01\x00", b"\x01" + bytes(30), chunk_bytes(noisy())[:-40]]
    )
    def test_bytes_that_are_no_chunk_are_refused(self, data: bytes) -> None:
        with pytest.raises(PackingError, match="chunk"):
            read_chunk(data, START)

from __future__ import annotations

import math

import pytest

from clusters.telemetry.slice_codec import PackingError, bucket_of, slice_bytes, slice_parts
from tests.clusters.telemetry.builders import block, gpu_block, host_block

START = 1_800_000_000


class TestSlices:
    def test_what_a_node_measured_in_one_bucket_comes_together(self) -> None:
        result = slice_bytes([gpu_block(START, "GPU-a", [10, 20]), host_block(START, [1, 2])])
        assert list(result) == [START, START + 10]
        gpu, host = slice_parts(result[START + 10])
        assert (gpu.subjects, gpu.metrics, gpu.mean.tolist(), gpu.max.tolist()) == (
            ("GPU-a",),
            ("utilization_pct",),
            [[20.0]],
            [[21.0]],
        )
        assert (host.subjects, host.mean.tolist()) == (("",), [[2.0]])

    def test_what_is_not_known_stays_so(self) -> None:
        told = block(START, [{"GPU-a": {"power_w": (300, 310)}, "GPU-b": {"fan_pct": (5, 6)}}])
        (part,) = slice_parts(slice_bytes([told])[START])
        assert part.mean[0, 0] == 300
        assert math.isnan(part.mean[0, 1])
        assert math.isnan(part.max[1, 0])

    def test_times_are_by_the_hubs_clock_at_the_nearest_bucket(self) -> None:
        assert list(slice_bytes([gpu_block(START, "GPU-a", [1, 2])], offset_s=3604.2)) == [
            START + 3600,
            START + 3610,
        ]
        assert list(slice_bytes([gpu_block(START, "GPU-a", [1])], offset_s=-6)) == [START - 10]

    @pytest.mark.parametrize("offset_s", [-5, 5, 4.999, 0.1])
    def test_no_clock_puts_two_buckets_into_one(self, offset_s: float) -> None:
        result = [bucket_of(START + step * 10 + offset_s) for step in range(50)]
        assert result == list(range(result[0], result[0] + 500, 10))


class TestBroken:
    @pytest.mark.parametrize(
        "data", [b"", b"\x09abc", b"\x01\x00\x00", b"\x01" + b"\x05\x00\x00\x00" * 2 + b"abcdefghij"]
    )
    def test_bytes_that_are_no_slice_are_refused(self, data: bytes) -> None:
        with pytest.raises(PackingError, match="slice"):
            slice_parts(data)

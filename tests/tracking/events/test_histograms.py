"""Histograms of event files: how they are read, stored and thinned out, and what hostile ones do."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from tensorboard.compat.proto import summary_pb2, tensor_pb2, tensor_shape_pb2, types_pb2

from jobs.models import Run
from tests.jobs.builders import running
from tests.tracking.events.files import NAME, event, event_file, histogram_of, new, old_histogram
from tracking.events import histogram_store, pending_attempts
from tracking.events.histogram_store import MAX_KEYS, MAX_STEPS, Buckets, HistogramPoint
from tracking.events.histograms import BUCKETS, read_histogram
from tracking.media import histograms
from tracking.models import Histogram
from workspaces.access import Principal


def tensor(shape: tuple[int, ...], content: bytes = b"", numbers: tuple[float, ...] = ()) -> Any:
    """A value that says it is a histogram."""
    dimensions = [tensor_shape_pb2.TensorShapeProto.Dim(size=size) for size in shape]
    proto = tensor_pb2.TensorProto(
        dtype=types_pb2.DT_DOUBLE,
        tensor_shape=tensor_shape_pb2.TensorShapeProto(dim=dimensions),
        tensor_content=content,
        double_val=numbers,
    )
    metadata = histogram_of("a", [1.0]).metadata
    return summary_pb2.Summary.Value(tag="a", tensor=proto, metadata=metadata)


class TestReading:
    def test_of_tensorflow_keeps_range_and_count(self) -> None:
        buckets = read_histogram(histogram_of("weights", np.linspace(-2, 6, 1001).tolist()))
        assert buckets is not None
        assert (buckets.low, buckets.high, len(buckets.counts)) == (-2, 6, BUCKETS)
        assert sum(buckets.counts) == pytest.approx(1001, rel=1e-4)
        assert max(buckets.counts) < 1.1 * min(buckets.counts)

    def test_of_torch_ends_at_its_least_and_greatest_value(self) -> None:
        limits = [-1.0, 0.0, 1.0, sys.float_info.max]
        buckets = read_histogram(old_histogram("weights", limits, [0, 10, 30, 5], -0.5, 1.5))
        assert buckets is not None
        assert (buckets.low, buckets.high) == (-0.5, 1.5)
        assert sum(buckets.counts) == pytest.approx(45, rel=1e-4)

    def test_of_equal_values_is_one_bucket(self) -> None:
        assert read_histogram(histogram_of("a", [3.0] * 7)) == Buckets(3, 3, [7])

    def test_a_million_buckets_become_few(self) -> None:
        edges = np.arange(1e6)
        content = np.column_stack((edges, edges + 1, np.ones(edges.size))).tobytes()
        buckets = read_histogram(tensor((edges.size, 3), content))
        assert buckets is not None
        assert len(buckets.counts) == BUCKETS
        assert sum(buckets.counts) == pytest.approx(1e6, rel=1e-4)

    @pytest.mark.parametrize(
        "value",
        [
            new("loss", 1.0),
            old_histogram("a", [], [], 0, 1),
            old_histogram("a", [1, 2], [1], 0, 2),
            old_histogram("a", [1], [float("nan")], 0, 1),
            old_histogram("a", [1], [-1], 0, 1),
            old_histogram("a", [1], [1], float("-inf"), 1),
            old_histogram("a", [1], [1], 1, 0),
            old_histogram("a", [1, 2], [sys.float_info.max] * 2, 0, 2),
            old_histogram("a", [1], [1], -sys.float_info.max, 1),
            tensor((10**9, 3), numbers=(1.0,)),
            tensor((1, 3), b"short"),
            tensor((0, 3)),
            tensor((3,), numbers=(0.0, 1.0, 1.0)),
            tensor((1, 2), numbers=(0.0, 1.0)),
            tensor((-1, 3), numbers=(1.0, 2.0, 3.0)),
            tensor((2, 3), numbers=(5.0, 6.0, 1.0, 0.0, 1.0, 1.0)),
            tensor((1, 3), numbers=(float("nan"), 1.0, 1.0)),
        ],
    )
    def test_what_is_none_or_invalid_is_left_out(self, value: Any) -> None:
        assert read_histogram(value) is None


@pytest.mark.django_db
class TestStoring:
    def test_comes_with_the_numbers_of_an_event_file(self, who: Principal) -> None:
        node, run = running(who)
        values = [
            event(histogram_of("weights", [0.0, 1.0, 2.0]), new("loss", 1.0), step=step) for step in (0, 10)
        ]
        node.log(run, f"logs/tb/{NAME}", 0, event_file(*values))
        pending_attempts.read_pending()
        assert [item["step"] for item in histograms.steps_of(run, 0, "weights")] == [0, 10]
        (series,) = histograms.series([(run, run.attempt)])[run.pk]
        assert (series.key, [file.step for file in series.files]) == ("weights", [0, 10])

    def test_many_steps_are_thinned_out_and_keep_first_and_last(self, who: Principal) -> None:
        run = self._run(who)
        for start in range(0, 1000, 50):
            self._append(run, [("weights", step) for step in range(start, start + 50)])
        steps = [int(str(item["step"])) for item in histograms.steps_of(run, 0, "weights")]
        assert len(steps) == MAX_STEPS
        assert (steps[0], steps[-1]) == (0, 999)
        assert sum(step < 500 for step in steps) >= 0.35 * MAX_STEPS

    def test_of_two_of_one_step_the_later_stays(self, who: Principal) -> None:
        run = self._run(who)
        self._append(run, [("weights", 1)], low=0)
        self._append(run, [("weights", 1)], low=-5)
        assert [item["low"] for item in histograms.steps_of(run, 0, "weights")] == [-5]

    def test_of_many_keys_the_first_stay(self, who: Principal) -> None:
        run = self._run(who)
        self._append(run, [(f"layer {number}", 0) for number in range(MAX_KEYS + 5)])
        self._append(run, [("one more", 0)])
        assert Histogram.objects.filter(run=run).count() == MAX_KEYS

    @staticmethod
    def _run(who: Principal) -> Run:
        return running(who)[1]

    @staticmethod
    def _append(run: Run, keys: list[tuple[str, int]], low: float = 0) -> None:
        points = [HistogramPoint(key, step, Buckets(low, 1, [1.0, 2.0])) for key, step in keys]
        histogram_store.append(run, run.attempt, points)

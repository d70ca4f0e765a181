from __future__ import annotations

import pytest

from clusters.models import Lease, TelemetrySlice
from clusters.telemetry.slice_codec import slice_bytes
from jobs.views.sparklines import HEIGHT, sparklines
from tests.jobs import builders
from tests.people import make_contributor, principal_of
from trainhub_launch.telemetry import Block, pack

pytestmark = pytest.mark.django_db
NOW = 1_800_000_000
GPUS = ("GPU-alpha-0", "GPU-alpha-1")


def measured(node: int, start: int, *pcts: float | None) -> None:
    """A bucket in which the GPUs were so busy; None: not known."""
    rows = [[{} if pct is None else {"utilization_pct": pct} for pct in pcts]]
    packed = pack(rows, ("utilization_pct",))
    block = Block(start, 10, GPUS[: len(pcts)], ("utilization_pct",), packed, packed)
    TelemetrySlice.objects.create(node_id=node, start=start, data=slice_bytes([block])[start])


class TestSparklines:
    def test_draw_the_mean_of_a_runs_gpus_and_tell_the_last(self) -> None:
        node = builders.node("alpha", gpus=2)
        run = builders.launched(
            principal_of(make_contributor()),
            distribution=builders.processes(2),
            resources={"gpus_per_node": 2},
        )
        for start in range(NOW - 600, NOW, 10):
            measured(node.pk, start, 100.0, 0.0)
        line = sparklines([run.pk], NOW)[run.pk]
        assert line.last_pct == 50.0
        (path,) = line.paths
        assert f" {1 + (HEIGHT - 2) / 2:.1f}" in path

    def test_leave_gaps_where_nothing_is_known(self) -> None:
        node = builders.node("alpha", gpus=1)
        run = builders.launched(principal_of(make_contributor()), resources={"gpus_per_node": 1})
        for start in (*range(NOW - 800, NOW - 600, 10), *range(NOW - 200, NOW, 10)):
            measured(node.pk, start, 80.0)
        assert len(sparklines([run.pk], NOW)[run.pk].paths) == 2

    def test_there_is_none_for_a_run_without_gpus_or_without_numbers(self) -> None:
        builders.node("alpha", gpus=1)
        who = principal_of(make_contributor())
        run, other = builders.launched(who), builders.launched(who, resources={"gpus_per_node": 1})
        assert Lease.objects.count() == 2
        assert sparklines([run.pk, other.pk], NOW) == {}

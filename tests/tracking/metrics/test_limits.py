"""Limits on the metrics and points of a run."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.db import IntegrityError

from tests.tracking.builders import logged_run
from tests.tracking.metrics.builders import log, row, values
from tracking.metrics import limits, point_writer
from tracking.metrics.points import Point
from tracking.models import Metric
from workspaces import process_caches
from workspaces.servers.ring import ring
from workspaces.servers.server_registry import OtherServer

pytestmark = pytest.mark.django_db


class TestLimits:
    def test_too_many_metrics_are_refused_with_what_to_do(self, settings: Any) -> None:
        settings.METRIC_KEYS_PER_RUN = 2
        run = logged_run()
        log(run, ("a", 1, 0), ("b", 1, 0))
        with pytest.raises(
            limits.MetricLimitExceeded, match=r"may have 2 different metrics .* keep the name the same"
        ):
            log(run, ("a", 2, 1), ("c", 1, 1))
        log(run, ("a", 2, 1))
        assert values(run, "a") == [1.0, 2.0]

    def test_so_are_too_many_points_also_by_a_process_that_has_just_begun(self, settings: Any) -> None:
        settings.METRIC_POINTS_PER_RUN = 3
        run = logged_run()
        log(run, ("a", 1, 0), ("a", 1, 1))
        process_caches.clear_all()
        with pytest.raises(limits.MetricLimitExceeded, match="3 points in total"):
            log(run, ("a", 1, 2), ("a", 1, 3))
        log(run, ("a", 5, 2))
        assert row(run, "a").count == 3

    def test_batches_that_are_checked_before_one_is_stored_share_the_room(self, settings: Any) -> None:
        settings.METRIC_POINTS_PER_RUN, settings.METRIC_KEYS_PER_RUN = 3, 1
        run = logged_run()
        first = limits.reserve(run.pk, {"a"}, 2)
        with pytest.raises(limits.MetricLimitExceeded, match="3 points in total"):
            limits.reserve(run.pk, {"a"}, 2)
        with pytest.raises(limits.MetricLimitExceeded, match="1 different metrics"):
            limits.reserve(run.pk, {"b"}, 1)
        limits.cancel(first)
        limits.confirm(limits.reserve(run.pk, {"b"}, 3))

    def test_what_another_server_stores_counts_soon(
        self, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.METRIC_POINTS_PER_RUN = 4
        run = logged_run()
        log(run, ("a", 1, 0))
        ring.update("a" * 32, [OtherServer(letter * 32, letter, "") for letter in "ab"], time.monotonic())
        # As another process does.
        Metric.objects.filter(run=run).update(count=3)
        monkeypatch.setattr(limits, "SHARED_S", 0.0)
        with pytest.raises(limits.MetricLimitExceeded, match="4 points in total"):
            limits.reserve(run.pk, {"a"}, 2)
        limits.reserve(run.pk, {"a"}, 1)

    def test_points_that_could_not_be_stored_take_no_room(self, settings: Any) -> None:
        settings.METRIC_POINTS_PER_RUN = 3
        run = logged_run()
        no_experiment: Any = None
        with pytest.raises(IntegrityError):
            point_writer.append(run.pk, no_experiment, [Point("a", 1.0, 0, 0), Point("a", 1.0, 1, 0)])
        log(run, ("a", 1, 0), ("a", 1, 1), ("a", 1, 2))
        assert row(run, "a").count == 3

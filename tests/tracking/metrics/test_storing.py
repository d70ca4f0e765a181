from __future__ import annotations

import asyncio
import math

import numpy as np
import pytest
from django.core.checks import Tags, run_checks
from django.db import IntegrityError, connection
from django.test.utils import CaptureQueriesContext

from jobs.models import Run
from tests.tracking.builders import logged_run
from tests.tracking.metrics.builders import log, row, values
from tracking.metrics import compaction, curve_reader, point_writer, points
from tracking.metrics.points import MAX_BLOCK_POINTS, Point
from tracking.models import Metric, MetricBlock, MetricSlice
from workspaces.set_aside import CORRUPT, sentences

pytestmark = pytest.mark.django_db


class TestAppend:
    def test_the_last_point_is_that_of_the_highest_step_whenever_it_came(self) -> None:
        run = logged_run()
        log(run, ("loss", 0.5, 10), ("loss", 0.9, 1))
        log(run, ("loss", 0.7, 5))
        result = row(run, "loss")
        assert (result.last_value, result.last_step, result.last_ms, result.count) == (0.5, 10, 1010, 3)
        assert (result.min_value, result.max_value) == (0.5, 0.9)

    def test_of_points_of_one_step_and_time_the_largest_counts(self) -> None:
        run = logged_run()
        point_writer.append(
            run.pk, run.experiment_id, [Point("loss", value, 0, 7) for value in (3.0, 1.0, 2.0)]
        )
        assert row(run, "loss").last_value == 3.0

    def test_nan_and_infinities_are_kept_and_leave_the_extremes_alone(self) -> None:
        run = logged_run()
        log(
            run,
            ("loss", 1.0, 0),
            ("loss", math.nan, 1),
            ("up", math.inf, 0),
            ("down", -math.inf, 0),
            ("only", math.nan, 0),
        )
        assert (row(run, "loss").last_value, row(run, "loss").min_value, row(run, "loss").max_value) == (
            None,
            1.0,
            1.0,
        )
        assert (row(run, "up").last_value, row(run, "down").last_value) == (math.inf, -math.inf)
        assert (row(run, "only").last_value, row(run, "only").max_value) == (None, None)
        assert [repr(value) for value in values(run, "loss")] == ["1.0", "nan"]
        assert values(run, "up") == [math.inf]

    def test_steps_and_times_may_be_as_large_as_64_bits(self) -> None:
        run = logged_run()
        most = 2**63 - 1
        point_writer.append(
            run.pk, run.experiment_id, [Point("x", 1.0, most, most), Point("x", 2.0, -most, -most)]
        )
        assert (row(run, "x").last_step, row(run, "x").last_ms) == (most, most)
        assert values(run, "x") == [2.0, 1.0]


class TestFolding:
    def test_a_curve_reads_the_same_before_and_after(self) -> None:
        run = logged_run()
        random = np.random.default_rng(3)
        for start in range(0, 3000, 100):
            log(
                run,
                *(("loss", float(random.normal()), step) for step in range(start, start + 100)),
                ("lr", 0.1, start),
            )
        before = values(run, "loss"), values(run, "lr")
        assert compaction.fold_run(run.pk) is False
        assert (values(run, "loss"), values(run, "lr")) == before
        assert not MetricSlice.objects.filter(run=run).exists()

    def test_small_blocks_grow_and_full_ones_stay(self) -> None:
        run = logged_run()
        for start in (0, 100, 5000):
            log(run, *(("loss", 1.0, step) for step in range(start, start + (100 if start < 5000 else 9000))))
            compaction.fold_run(run.pk)
        sizes = list(MetricBlock.objects.order_by("number").values_list("number", "points"))
        assert sizes == [(0, MAX_BLOCK_POINTS), (1, MAX_BLOCK_POINTS), (2, 200 + 9000 - 2 * MAX_BLOCK_POINTS)]

    def test_a_run_that_has_logged_much_is_folded_in_the_next_round(self) -> None:
        run, quiet = logged_run(), logged_run()
        log(quiet, ("loss", 1.0, 0))
        log(run, *(("loss", 1.0, step) for step in range(compaction.POINTS_PER_CURVE * 4)))
        compaction.fold_due()
        assert list(MetricSlice.objects.values_list("run_id", flat=True)) == [quiet.pk]

    def test_what_nobody_has_in_mind_any_more_is_folded_when_it_is_quiet(self) -> None:
        old, fresh = logged_run(), logged_run()
        log(old, ("loss", 1.0, 0))
        log(fresh, ("loss", 1.0, 0))
        MetricSlice.objects.filter(run=old).update(created_at="2026-01-01T00:00:00Z")
        compaction.fold_quiet()
        assert list(MetricSlice.objects.values_list("run_id", flat=True)) == [fresh.pk]
        assert values(old, "loss") == [1.0]

    def test_what_cannot_be_read_costs_its_own_points_alone(self) -> None:
        run, other = logged_run(), logged_run()
        for item in (run, other):
            log(item, ("loss", 1.0, 0), ("loss", 2.0, 1))
            compaction.fold_run(item.pk)
        MetricBlock.objects.filter(metric__run=run).update(data=b"\x09 broken")
        log(run, ("loss", 3.0, 2))
        assert values(run, "loss") == [3.0]
        assert compaction.fold_run(run.pk) is False
        assert (values(run, "loss"), values(other, "loss")) == ([3.0], [1.0, 2.0])
        assert curve_reader.histories(run.pk, ["loss"])["loss"].value.tolist() == [3.0]

    def test_slices_of_a_newer_version_stay_and_are_folded_once_it_is_known(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = logged_run()
        for step in range(3):
            log(run, ("loss", float(step), step))
        first, second, _ = MetricSlice.objects.order_by("pk")
        newer = b"\x02" + bytes(first.data)[1:]
        MetricSlice.objects.filter(pk=first.pk).update(data=newer)
        MetricSlice.objects.filter(pk=second.pk).update(data=b"\x01 broken")
        MetricSlice.objects.update(created_at="2026-01-01T00:00:00Z")
        compaction.fold_quiet()
        left = list(MetricSlice.objects.order_by("pk").values_list("data", "set_aside"))
        assert left == [(newer, 2), (b"\x01 broken", CORRUPT)]
        assert values(run, "loss") == [2.0]
        with CaptureQueriesContext(connection) as queries:
            compaction.fold_quiet()
        assert len(queries) == 1, "rows that were set aside are not looked at again"
        assert set(sentences()) == {
            "1 slice of metrics that cannot be read is set aside.",
            "1 slice of metrics of format version 2, written by a newer TrainHub, is set aside.",
        }
        assert [warning.msg for warning in run_checks(databases=["default"], tags=[Tags.database])] == list(
            sentences()
        )
        # As if this hub had been upgraded: it knows version 2, which differs by its number alone.
        for module in (points, compaction, curve_reader):
            monkeypatch.setattr(module, "VERSION", 2)
        compaction.fold_quiet()
        assert list(MetricSlice.objects.values_list("data", flat=True)) == [b"\x01 broken"]

    def test_a_run_that_cannot_be_folded_keeps_none_of_the_others_back(self) -> None:
        broken, fine = sorted((logged_run(), logged_run()), key=lambda run: run.pk)
        for item in (broken, fine):
            log(item, ("loss", 1.0, 0))
        # Points whose curve is gone, as no transaction of ours leaves them.
        Metric.objects.filter(run=broken).delete()
        MetricSlice.objects.update(created_at="2026-01-01T00:00:00Z")
        compaction.fold_quiet()
        assert list(MetricSlice.objects.values_list("run_id", flat=True)) == [broken.pk]

    def test_very_many_points_are_folded_in_several_goes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(compaction, "MAX_POINTS_AT_ONCE", 150)
        run = logged_run()
        for start in range(0, 400, 100):
            log(run, *(("loss", float(step), step) for step in range(start, start + 100)))
        goes = 1
        while compaction.fold_run(run.pk):
            goes += 1
        assert goes == 2
        assert values(run, "loss") == [float(step) for step in range(400)]

    def test_a_quiet_run_is_folded_to_its_end_in_one_round(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(compaction, "MAX_SLICES_AT_ONCE", 1)
        run = logged_run()
        for step in range(3):
            log(run, ("loss", float(step), step))
        MetricSlice.objects.update(created_at="2026-01-01T00:00:00Z")
        compaction.fold_quiet()
        assert not MetricSlice.objects.exists()
        assert values(run, "loss") == [0.0, 1.0, 2.0]


class TestReading:
    def test_a_slice_that_cannot_be_read_costs_its_own_points_alone(self) -> None:
        run = logged_run()
        for step in range(2):
            log(run, ("loss", float(step), step))
        MetricSlice.objects.filter(pk=MetricSlice.objects.order_by("pk")[0].pk).update(data=b"\x01 broken")
        assert values(run, "loss") == [1.0]
        assert curve_reader.histories(run.pk, ["loss"])["loss"].value.tolist() == [1.0]

    def test_a_batch_that_a_client_sent_twice_is_there_once(self) -> None:
        run = logged_run()
        for _ in range(2):
            log(run, ("loss", 0.5, 0), ("loss", 0.4, 1))
        assert values(run, "loss") == [0.5, 0.4]
        compaction.fold_run(run.pk)
        assert values(run, "loss") == [0.5, 0.4]
        assert list(curve_reader.curve(run.pk, "loss", pixels=10).y) == [0.5, 0.4]

    def test_points_come_by_time_then_step(self) -> None:
        run = logged_run()
        point_writer.append(
            run.pk,
            run.experiment_id,
            [Point("x", 1.0, 5, 20), Point("x", 2.0, 1, 30), Point("x", 3.0, 4, 20)],
        )
        assert values(run, "x") == [3.0, 1.0, 2.0]

    def test_a_span_has_a_neighbour_at_each_end(self) -> None:
        run = logged_run()
        log(run, *(("loss", float(step), step) for step in range(100)))
        result = curve_reader.curve(run.pk, "loss", pixels=100, start=10, end=20)
        assert (result.x[0], result.x[-1]) == (9, 21)
        beyond = curve_reader.curve(run.pk, "loss", pixels=100, start=500, end=600)
        assert list(beyond.x) == [99]

    def test_by_time_the_axis_is_milliseconds(self) -> None:
        run = logged_run()
        log(run, ("loss", 1.0, 3), ("loss", 2.0, 9))
        assert list(curve_reader.curve(run.pk, "loss", pixels=10, axis="ms").x) == [1003, 1009]

    def test_what_cannot_be_drawn_is_marked(self) -> None:
        run = logged_run()
        log(
            run,
            ("loss", 1.0, 0),
            ("loss", math.nan, 1),
            ("loss", math.inf, 2),
            ("loss", 0.5, 3),
            ("loss", -math.inf, 4),
        )
        result = curve_reader.curve(run.pk, "loss", pixels=10)
        assert list(result.y) == [1.0, 0.5]
        assert list(result.odd_x) == [1, 2, 4]
        assert [repr(float(item)) for item in result.odd] == ["nan", "inf", "-inf"]

    def test_thousands_of_nans_are_a_mark_for_each_pixel(self) -> None:
        run = logged_run()
        log(run, *(("loss", math.nan, step) for step in range(5000)))
        result = curve_reader.curve(run.pk, "loss", pixels=50)
        assert len(result.odd) == 50
        assert result.count == 5000

    def test_several_curves_read_together_are_what_each_is_alone(self) -> None:
        run = logged_run()
        log(run, *(("loss", float(step), step) for step in range(50)), ("lr", 0.1, 3), ("lr", 0.2, 1))
        compaction.fold_run(run.pk)
        log(run, ("loss", 0.5, 99), ("lr", 0.3, 2), ("other", 1.0, 0))
        result = curve_reader.histories(run.pk, ["loss", "lr", "none"])
        assert {key: points.value.tolist() for key, points in result.items()} == {
            "loss": values(run, "loss"),
            "lr": [0.2, 0.3, 0.1],
            "none": [],
        }

    def test_a_curve_that_there_is_not_is_empty(self) -> None:
        assert len(curve_reader.curve_history(logged_run().pk, "none")) == 0
        assert curve_reader.curve(logged_run().pk, "none", pixels=10).count == 0


@pytest.mark.django_db(transaction=True)
class TestTogether:
    async def test_four_writers_at_once_lose_nothing(self) -> None:
        runs = [await asyncio.to_thread(logged_run) for _ in range(4)]

        async def write(run: Run) -> None:
            for step in range(50):
                await point_writer.append_soon(run.pk, run.experiment_id, [Point("loss", step, step, step)])

        await asyncio.gather(*map(write, runs))
        for run in runs:
            assert await asyncio.to_thread(values, run, "loss") == [float(step) for step in range(50)]

    async def test_a_run_that_is_gone_keeps_none_of_the_others_back(self) -> None:
        run = await asyncio.to_thread(logged_run)
        here = [
            point_writer.append_soon(run.pk, run.experiment_id, [Point("a", 1.0, step, 0)])
            for step in range(10)
        ]
        gone = point_writer.append_soon("f" * 32, run.experiment_id, [Point("a", 1.0, 0, 0)])
        *fine, refused = await asyncio.gather(*here, gone, return_exceptions=True)
        assert fine == [None] * 10
        assert isinstance(refused, IntegrityError)
        assert await asyncio.to_thread(values, run, "a") == [1.0] * 10

    async def test_a_request_that_is_cancelled_is_stored_and_breaks_nothing(self) -> None:
        run, errors = await asyncio.to_thread(logged_run), []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        first, second = (
            asyncio.create_task(
                point_writer.append_soon(run.pk, run.experiment_id, [Point("a", value, int(value), 0)])
            )
            for value in (1.0, 2.0)
        )
        await asyncio.sleep(0)
        first.cancel()
        await second
        assert (await asyncio.to_thread(values, run, "a"), errors) == ([1.0, 2.0], [])

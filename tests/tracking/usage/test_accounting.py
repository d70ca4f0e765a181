from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from clusters.models import Lease, Node, TelemetrySlice
from jobs import run_curves
from jobs.models import Attempt, AttemptNode, Run
from tests.jobs import builders
from tests.tracking.usage.builders import again, at, finish, run_with_gpus, store_power
from tracking.models import UsageEntry
from tracking.usage import accounting, usage_report
from workspaces.access import Principal

NOW = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
HOUR = timedelta(hours=1)


@pytest.fixture
def node(who: Principal) -> Node:
    return builders.node(gpus=2)


def rows(run: Run) -> list[UsageEntry]:
    return list(UsageEntry.objects.filter(run=run).order_by("attempt", "month"))


class TestTime:
    def test_is_gpus_times_seconds_from_placement_to_release(self, who: Principal, node: Node) -> None:
        run = run_with_gpus(who, node, NOW - 3 * HOUR, NOW - HOUR)
        accounting.account_recent(NOW)
        [entry] = rows(run)
        assert (entry.gpu_seconds, entry.node_seconds, entry.gpus) == (2 * 7200.0, 7200.0, 2)
        assert (entry.run_number, entry.user_name, entry.cluster_name) == (run.number, "carl", "local")
        assert entry.experiment_name == run.experiment.name

    def test_of_a_run_on_process_slots_is_that_of_its_node_alone(self, who: Principal, node: Node) -> None:
        run = run_with_gpus(who, node, NOW - 3 * HOUR, NOW - HOUR, gpus=0)
        accounting.account_recent(NOW)
        [entry] = rows(run)
        assert (entry.gpu_seconds, entry.node_seconds, entry.energy_j) == (0.0, 7200.0, None)

    def test_is_split_where_a_month_ends_in_utc(self, who: Principal, node: Node) -> None:
        run = run_with_gpus(
            who, node, datetime(2026, 2, 28, 23, 30, tzinfo=UTC), datetime(2026, 4, 1, 0, 15, tzinfo=UTC)
        )
        accounting.account_history(NOW)
        assert [(entry.month, entry.gpu_seconds) for entry in rows(run)] == [
            (date(2026, 2, 1), 2 * 1800.0),
            (date(2026, 3, 1), 2 * 31 * 86400.0),
            (date(2026, 4, 1), 2 * 900.0),
        ]

    def test_of_every_attempt_counts(self, who: Principal, node: Node) -> None:
        run = builders.launched(
            who, distribution=builders.processes(2), resources={"gpus_per_node": 2}, limits={"retries": 1}
        )
        finish(node, run, 1, 2, code=3)
        at(run, 1, NOW - 5 * HOUR, NOW - 4 * HOUR)
        again(node, run, NOW - 3 * HOUR, NOW - 2.5 * HOUR)
        accounting.account_recent(NOW)
        assert [(entry.attempt, entry.gpu_seconds) for entry in rows(run)] == [(1, 7200.0), (2, 3600.0)]
        assert usage_report.hours_by_run([run.pk]) == {run.pk: (3.0, None)}

    def test_of_a_living_run_grows(self, who: Principal, node: Node) -> None:
        run = run_with_gpus(who, node, NOW - HOUR, None)
        for passed in (0, 1):
            accounting.account_recent(NOW + passed * HOUR)
            [entry] = rows(run)
            assert (entry.gpu_seconds, entry.is_final) == ((1 + passed) * 7200.0, False)

    def test_goes_on_while_a_lost_node_keeps_the_gpus(self, who: Principal, node: Node) -> None:
        run = run_with_gpus(who, node, NOW - 3 * HOUR, NOW - 2 * HOUR)
        Lease.objects.update(released_at=None)
        accounting.account_recent(NOW)
        [entry] = rows(run)
        assert (entry.gpu_seconds, entry.is_final) == (3 * 7200.0, False)


class TestEnergy:
    def test_is_power_times_time_of_the_gpus_that_were_held(self, who: Principal, node: Node) -> None:
        run = run_with_gpus(who, node, NOW - HOUR, NOW - HOUR / 2)
        store_power(
            node, NOW - 2 * HOUR, 7200, {"GPU-alpha-0": 300.0, "GPU-alpha-1": 100.0, "GPU-other": 700.0}
        )
        accounting.account_recent(NOW)
        [entry] = rows(run)
        assert entry.energy_j == 400.0 * 1800

    def test_leaves_out_what_was_not_measured(self, who: Principal, node: Node) -> None:
        run = run_with_gpus(who, node, NOW - HOUR, NOW)
        store_power(node, NOW - HOUR, 600, {"GPU-alpha-0": 300.0})
        accounting.account_recent(NOW)
        [entry] = rows(run)
        assert entry.energy_j == 300.0 * 600

    def test_is_not_known_where_nothing_was_measured(self, who: Principal, node: Node) -> None:
        run = run_with_gpus(who, node, NOW - HOUR, NOW)
        accounting.account_recent(NOW)
        assert rows(run)[0].energy_j is None

    def test_is_split_where_a_month_ends(self, who: Principal, node: Node) -> None:
        midnight = NOW.replace(day=1, hour=0)
        run = run_with_gpus(who, node, midnight - timedelta(seconds=95), midnight + timedelta(seconds=200))
        store_power(
            node, midnight - timedelta(seconds=600), 1200, {"GPU-alpha-0": 100.0, "GPU-alpha-1": 100.0}
        )
        # As if the month had just begun: the numbers of ten seconds are kept for days only.
        accounting.account_history(NOW)
        assert [entry.energy_j for entry in rows(run)] == [200.0 * 95, 200.0 * 200]

    def test_comes_from_the_kept_curves_once_there_are_some(self, who: Principal, node: Node) -> None:
        run = run_with_gpus(who, node, NOW - HOUR, NOW - HOUR / 2)
        store_power(node, NOW - HOUR, 1800, {"GPU-alpha-0": 300.0, "GPU-alpha-1": 100.0})
        AttemptNode.objects.update(settled_at=NOW - HOUR / 2)
        assert run_curves.store_ended_curves(NOW) == 1
        TelemetrySlice.objects.all().delete()
        accounting.account_recent(NOW)
        [entry] = rows(run)
        assert entry.energy_j == 400.0 * 1800


class TestFinal:
    def test_once_the_curves_are_kept(self, who: Principal, node: Node) -> None:
        run = run_with_gpus(who, node, NOW - HOUR, NOW - HOUR / 2)
        accounting.account_recent(NOW)
        assert not rows(run)[0].is_final
        AttemptNode.objects.update(settled_at=NOW - HOUR / 2)
        run_curves.store_ended_curves(NOW)
        accounting.account_recent(NOW)
        assert rows(run)[0].is_final

    def test_at_last_without_them(self, who: Principal, node: Node) -> None:
        run = run_with_gpus(who, node, NOW - 9 * HOUR, NOW - 8 * HOUR)
        accounting.account_recent(NOW)
        assert rows(run)[0].is_final

    def test_rows_are_not_counted_again(self, who: Principal, node: Node) -> None:
        run = run_with_gpus(who, node, NOW - 9 * HOUR, NOW - 8 * HOUR)
        assert accounting.account_history(NOW) == 1
        assert accounting.account_history(NOW) == 0
        assert len(rows(run)) == 1

    def test_outlives_the_run(self, who: Principal, node: Node) -> None:
        run = run_with_gpus(who, node, NOW - HOUR, NOW - HOUR / 2)
        accounting.finalize_run(run, NOW)
        run.delete()
        [entry] = UsageEntry.objects.all()
        assert (entry.run, entry.is_final, entry.gpu_seconds) == (None, True, 3600.0)


def test_long_ended_history_is_counted_by_the_pass_over_all(who: Principal, node: Node) -> None:
    run = run_with_gpus(who, node, NOW - timedelta(days=60), NOW - timedelta(days=59))
    assert accounting.account_recent(NOW) == 0
    assert accounting.account_history(NOW) == 1
    assert sum(entry.gpu_seconds for entry in rows(run)) == 2 * 86400.0


def test_one_attempt_that_cannot_be_counted_does_not_stop_the_others(
    who: Principal, node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    broken = run_with_gpus(who, node, NOW - 9 * HOUR, NOW - 8 * HOUR)
    Run.objects.filter(pk=broken.pk).update(spec={"resources": None})
    whole = run_with_gpus(who, node, NOW - 7 * HOUR, NOW - 6 * HOUR)
    assert Attempt.objects.count() == 2
    assert accounting.account_recent(NOW) == 1
    assert rows(whole)
    assert "could not be accounted" in caplog.text

"""What counts as use: charged from the leases as they run, and folded into few rows when they end."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from clusters import leases
from clusters.fair_share import use
from clusters.models import Lease, MonthlyUse, UseAccount
from tests.clusters.builders import cluster, gpus_wanted, ready_node, slots_wanted, workspace
from tests.concurrency import run_at_once
from trainhub_launch.scheduler.capacity import Demand
from trainhub_launch.scheduler.fair_share import START_CHARGE_S
from trainhub_launch.scheduler.placement import Placement

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def lease(
    holder: str, demand: Demand, began: datetime, ended: datetime | None = None, person: int = 7
) -> None:
    with transaction.atomic():
        placed = leases.acquire(
            cluster(),
            demand,
            holder=holder,
            attempt=1,
            label=holder,
            workspace=workspace("vision"),
            person=person,
        )
    assert isinstance(placed, Placement)
    Lease.objects.filter(holder=holder).update(created_at=began, released_at=ended)


def used(now: datetime, person: int = 7) -> float:
    return use.use_of(cluster(), now).get((workspace("vision").pk, person), 0.0)


class TestUse:
    def test_grows_while_a_run_runs_and_includes_its_start(self) -> None:
        ready_node("alpha", "GPU-a", "GPU-b")
        now = timezone.now()
        lease("one", gpus_wanted(2), now)
        assert used(now) == 2 * START_CHARGE_S
        assert math.isclose(used(now + HOUR), 2 * (START_CHARGE_S + 3600), rel_tol=0.01)

    def test_is_the_same_before_and_after_the_lease_is_folded(self) -> None:
        ready_node("alpha", "GPU-a", "GPU-b")
        now = timezone.now()
        lease("one", gpus_wanted(2), now - 30 * HOUR, now - 10 * HOUR)
        lease("two", slots_wanted(8), now - 3 * HOUR, now - HOUR, person=8)
        before = {person: used(now + HOUR, person) for person in (7, 8)}
        assert before[8] > 3600
        assert use.fold(now) == 2
        assert use.fold(now) == 0
        for person, amount in before.items():
            assert math.isclose(used(now + HOUR, person), amount, rel_tol=1e-9)

    def test_many_leases_become_one_row_for_each_person(self) -> None:
        ready_node("alpha", "GPU-a")
        now = timezone.now()
        for number in range(5):
            lease(f"{number}", gpus_wanted(1), now - HOUR * (9 - number), now - HOUR * (8 - number))
            use.fold(now + timedelta(seconds=number))
        assert UseAccount.objects.count() == 1
        assert not Lease.objects.filter(charged_at=None).exists()

    def test_does_not_change_when_the_clock_goes_back(self) -> None:
        ready_node("alpha", "GPU-a")
        now = timezone.now()
        lease("one", gpus_wanted(1), now - HOUR, now)
        use.fold(now)
        assert used(now - 24 * HOUR) == used(now)
        lease("two", gpus_wanted(1), now, now)
        use.fold(now - 24 * HOUR)
        assert UseAccount.objects.get().as_of == now

    def test_an_earlier_hub_writes_leases_of_nobody(self) -> None:
        ready_node("alpha", "GPU-a")
        now = timezone.now()
        lease("one", gpus_wanted(1), now - HOUR, now, person=0)
        use.fold(now)
        assert used(now, person=0) > 3600


class TestMonth:
    def test_a_lease_across_midnight_counts_in_both_months(self) -> None:
        ready_node("alpha", "GPU-a")
        midnight = datetime(2026, 11, 1, tzinfo=UTC)
        lease("one", gpus_wanted(1), midnight - 2 * HOUR, midnight + HOUR)
        use.fold(midnight + 2 * HOUR)
        rows = dict(MonthlyUse.objects.values_list("month", "gpu_seconds"))
        assert rows == {date(2026, 10, 1): 7200.0, date(2026, 11, 1): 3600.0}

    def test_the_running_lease_counts_too_and_slots_do_not(self) -> None:
        ready_node("alpha", "GPU-a")
        noon = datetime(2026, 12, 5, 12, tzinfo=UTC)
        lease("one", gpus_wanted(1), noon - HOUR, noon)
        use.fold(noon)
        lease("two", gpus_wanted(1), noon)
        lease("three", slots_wanted(4), noon)
        assert use.gpu_seconds_in_month(noon + HOUR) == {(workspace("vision").pk, 7): 7200.0} | {}
        assert use.gpu_seconds_in_month(datetime(2027, 1, 1, tzinfo=UTC)) == {}


@pytest.mark.django_db(transaction=True)
def test_workers_that_fold_at_once_count_nothing_twice() -> None:
    ready_node("alpha", "GPU-a")
    now = timezone.now()
    for number in range(20):
        lease(f"{number}", gpus_wanted(1), now - HOUR, now)
    expected = used(now)
    run_at_once(*[lambda: use.fold(now)] * 4)
    assert math.isclose(used(now), expected, rel_tol=1e-9)

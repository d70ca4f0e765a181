"""Alerts over time, out of rows as the worker finds them: each fires once and clears once, and is
remembered."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from clusters import tasks
from clusters.alerts import alert_store, fact_loader
from clusters.alerts.evaluation import evaluate_rules
from clusters.alerts.limits import AlertLimits, LimitTable
from clusters.models import Alert, Gpu, Node
from tests.clusters.alerts.world import World, alerts, kinds, states
from tests.clusters.builders import GIB, workspace

pytestmark = pytest.mark.django_db
STRAY = {"pid": 9, "name": "jupyter", "user": "bob", "run": "", "memory_bytes": 40 * GIB}
PORT = {"device": "mlx5_0", "port": 1, "rate": "", "link_layer": "InfiniBand"}


def ports(state: str) -> Callable[[World], None]:
    return lambda world: world.vitals.update(network_ports=[{**PORT, "state": state}])


def counters(**told: int) -> Callable[[World], None]:
    return lambda world: world.vitals.update(counters={"GPU-a": told})


def numbers(**told: float | None) -> Callable[[World], None]:
    return lambda world: world.set("GPU-a", **told)


def field(**told: Any) -> Callable[[World], None]:
    return lambda world: void(Node.objects.filter(pk=world.node.pk).update(**told))


def vitals(**told: Any) -> Callable[[World], None]:
    return lambda world: world.vitals.update(told)


def silence(is_silent: bool) -> Callable[[World], None]:
    return lambda world: setattr(world, "silent", is_silent)


def void(_: object) -> None:
    return None


def nothing(_: World) -> None:
    return None


SCENARIOS: dict[str, tuple[Callable[[World], None], Callable[[World], None], float]] = {
    # kind: what makes it hold, what ends it, after how many minutes it is sure to have fired
    "gpu_idle": (numbers(utilization_pct=0.0), numbers(utilization_pct=80.0), 16),
    "gpu_hang": (numbers(utilization_pct=100.0, power_w=100.0), numbers(power_w=600.0), 6),
    "gpu_throttled": (numbers(throttled_thermal_pct=50.0), numbers(throttled_thermal_pct=0.0), 1.2),
    "gpu_hot": (numbers(temperature_c=95.0), numbers(temperature_c=60.0), 1.2),
    "gpu_memory": (numbers(memory_used_bytes=139.5 * GIB), numbers(memory_used_bytes=70.0 * GIB), 1.2),
    "gpu_ecc": (counters(ecc_uncorrected=5), counters(ecc_uncorrected=5), 0.2),
    "gpu_xid": (
        lambda world: world.happen("xid", "GPU-a", 79),
        lambda world: world.happen("gpu_back", "GPU-a"),
        0.2,
    ),
    "gpu_rows": (counters(remapped_rows_pending=1), counters(remapped_rows_pending=0), 0.2),
    "gpu_pages": (counters(retired_pages_pending=1), counters(retired_pages_pending=0), 0.2),
    "gpu_pcie": (counters(pcie_width=4, pcie_width_max=16), counters(pcie_width=16, pcie_width_max=16), 6),
    "gpu_lost": (lambda world: world.lose("GPU-a"), lambda world: world.lose("GPU-a", "ok"), 0.2),
    "gpu_stray": (vitals(processes={"GPU-b": [STRAY]}), vitals(processes={}), 6),
    "node_silent": (silence(True), silence(False), 1.0),
    "node_nvml": (field(nvml="The driver is gone."), field(nvml=""), 0.8),
    "node_disk": (vitals(disk_free_bytes=GIB), vitals(disk_free_bytes=90 * GIB), 0.2),
    "node_memory": (vitals(memory_used_bytes=63 * GIB), vitals(memory_used_bytes=9 * GIB), 1.2),
    "node_port": (ports("DOWN"), ports("ACTIVE"), 0.8),
    "node_clock": (field(clock_offset_s=3600.0), field(clock_offset_s=0.0), 1.2),
}


@pytest.fixture
def world() -> World:
    """One GPU held and busy, one free; all was well for a while."""
    found = World("GPU-a", "GPU-b")
    found.hold("GPU-a", workspace=workspace())
    ports("ACTIVE")(found)
    counters(ecc_uncorrected=3)(found)
    found.tick(times=3)
    assert states() == []
    return found


class TestEachRule:
    @pytest.mark.parametrize("kind", SCENARIOS)
    def test_fires_once_and_clears_once(self, world: World, kind: str) -> None:
        begins, ends, minutes = SCENARIOS[kind]
        begins(world)
        world.minutes(minutes)
        assert [(alert.kind, alert.state) for alert in alerts()] == [(kind, "firing")]
        world.minutes(2)
        assert states() == ["firing"]
        ends(world)
        world.minutes(62 if kind == "gpu_ecc" else 2)
        assert states() == ["cleared"]
        alert = Alert.objects.get()
        assert alert.fired_at is not None
        assert alert.cleared_at is not None
        assert alert.since <= alert.fired_at < alert.cleared_at
        assert "alpha" in alert.sentence

    def test_ranks_that_are_unbalanced_are_told_once_for_the_run(self) -> None:
        world = World("GPU-a", "GPU-b")
        world.hold("GPU-a", "GPU-b", workspace=workspace())
        world.set("GPU-b", utilization_pct=15.0)
        world.minutes(5)
        world.set("GPU-b", utilization_pct=90.0)
        world.tick(times=2)
        world.set("GPU-b", utilization_pct=15.0)
        world.minutes(6)
        assert states("run_unbalanced") == ["firing"]
        alert = Alert.objects.get()
        assert (alert.holder, alert.facts["gpu"], alert.node_id) == ("a" * 32, "GPU-b", world.node.pk)
        world.set("GPU-b", utilization_pct=90.0)
        world.minutes(2)
        assert states() == ["cleared"]


class TestPending:
    def test_what_does_not_last_is_never_told(self, world: World) -> None:
        world.set("GPU-a", utilization_pct=0.0)
        world.minutes(10)
        assert states() == ["pending"]
        world.set("GPU-a", utilization_pct=90.0)
        world.tick(times=2)
        assert states() == []

    def test_another_holder_is_another_case(self, world: World) -> None:
        world.set("GPU-a", utilization_pct=0.0)
        world.minutes(10)
        world.node.leases.all().delete()
        world.hold("GPU-a", holder="b" * 32, label="run 42")
        world.minutes(10)
        assert states() == ["pending"]
        world.minutes(6)
        assert [(alert.state, alert.holder) for alert in alerts()] == [("firing", "b" * 32)]

    def test_a_time_in_which_nobody_looked_does_not_count(self, world: World) -> None:
        world.set("GPU-a", utilization_pct=0.0)
        world.minutes(10)
        world.now += timedelta(minutes=30)
        world.tick()
        assert states() == ["pending"]
        world.minutes(16)
        assert states() == ["firing"]


class TestFlapping:
    def test_what_comes_and_goes_stays_one_alert(self, world: World) -> None:
        for _ in range(5):
            world.set("GPU-a", throttled_thermal_pct=90.0)
            world.minutes(1.5)
            world.set("GPU-a", throttled_thermal_pct=0.0)
            world.tick(times=3)
        assert states() == ["firing"]

    def test_what_comes_again_later_is_a_new_alert_and_the_first_is_history(self, world: World) -> None:
        for _ in range(2):
            world.vitals["disk_free_bytes"] = GIB
            world.tick()
            world.vitals["disk_free_bytes"] = 90 * GIB
            world.minutes(2)
        assert states() == ["cleared", "cleared"]


class TestUnknown:
    def test_the_alerts_of_a_silent_node_stay_and_its_silence_fires(self, world: World) -> None:
        world.lose("GPU-a")
        world.vitals["disk_free_bytes"] = GIB
        world.tick()
        world.silent = True
        world.minutes(5)
        assert sorted(kinds(alerts().filter(state="firing"))) == ["gpu_lost", "node_disk", "node_silent"]
        world.silent = False
        world.vitals["disk_free_bytes"] = 90 * GIB
        world.lose("GPU-a", "ok")
        world.minutes(1)
        assert set(states()) == {"cleared"}

    def test_a_number_that_is_not_told_any_more_neither_clears_nor_fires(self, world: World) -> None:
        world.set("GPU-a", utilization_pct=0.0)
        world.minutes(16)
        world.set("GPU-a", utilization_pct=None)
        world.minutes(5)
        assert states() == ["firing"]

    def test_gpus_that_nvml_hides_keep_their_alerts(self, world: World) -> None:
        world.lose("GPU-a")
        world.tick()
        Node.objects.filter(pk=world.node.pk).update(nvml="The driver is gone.")
        Gpu.objects.update(present=False)
        world.minutes(3)
        assert sorted(kinds(alerts().filter(state="firing"))) == ["gpu_lost", "node_nvml"]

    def test_a_gpu_that_was_taken_out_has_none_any_more(self, world: World) -> None:
        world.lose("GPU-a")
        world.tick()
        Gpu.objects.filter(pk="GPU-a").update(present=False)
        world.minutes(1)
        assert states() == ["cleared"]

    @pytest.mark.parametrize("changed", ["drained_at", "revoked_at"])
    def test_a_node_that_was_taken_out_of_use_may_be_silent(self, world: World, changed: str) -> None:
        Node.objects.filter(pk=world.node.pk).update(**{changed: world.now})
        world.silent = True
        world.minutes(5)
        assert states() == []

    def test_errors_of_before_it_was_watched_are_no_news(self) -> None:
        world = World("GPU-a")
        world.vitals["counters"] = {"GPU-a": {"ecc_uncorrected": 12}}
        world.minutes(1)
        assert states() == []


class TestWorkers:
    def test_one_that_begins_anew_goes_on_where_the_last_one_was(self, world: World) -> None:
        """Nothing is kept in memory: every tick reads rows, as after a restart."""
        world.set("GPU-a", utilization_pct=0.0)
        world.minutes(8)
        row = Alert.objects.get()
        world.minutes(8)
        assert Alert.objects.get().pk == row.pk
        assert states() == ["firing"]

    def test_two_that_look_at_once_open_and_fire_one_alert(self, world: World) -> None:
        world.lose("GPU-a")
        world.report()
        outcome = evaluate_rules(fact_loader.load_nodes(world.now), LimitTable(AlertLimits()))
        for _ in range(2):
            alert_store.apply_evaluation(outcome, world.now)
        assert states() == ["firing"]

    def test_a_rule_that_is_switched_off_clears_what_it_had_told(
        self, world: World, settings: Settings
    ) -> None:
        world.lose("GPU-a")
        world.tick()
        settings.ALERT_GPU_LOST = False
        world.minutes(1)
        assert states() == ["cleared"]

    def test_history_is_forgotten_after_its_days(self, world: World, settings: Settings) -> None:
        world.lose("GPU-a")
        world.tick()
        world.lose("GPU-a", "ok")
        world.minutes(1)
        alert_store.delete_old(world.now + timedelta(days=settings.ALERT_KEEP_DAYS - 1))
        assert states() == ["cleared"]
        Alert.objects.update(cleared_at=timezone.now() - timedelta(days=settings.ALERT_KEEP_DAYS + 1))
        tasks.forget_alerts()
        assert states() == []

    def test_many_nodes_take_no_more_queries_than_few(self) -> None:
        first = World("GPU-0", name="n0")
        first.report()
        fact_loader.load_nodes(first.now)
        few = queries(first)
        for index in range(1, 12):
            World(f"GPU-{index}", name=f"n{index}").report()
        fact_loader.load_nodes(first.now)
        assert queries(first) <= few


def queries(world: World) -> int:
    with CaptureQueriesContext(connection) as found:
        fact_loader.load_nodes(world.now)
    return len(found)


class TestOpen:
    def test_the_gravest_come_first(self, world: World) -> None:
        world.vitals["disk_free_bytes"] = GIB
        world.tick()
        world.vitals["counters"] = {"GPU-a": {"ecc_uncorrected": 3, "retired_pages_pending": 1}}
        world.tick()
        assert kinds(alert_store.open_alerts([world.node])) == ["node_disk", "gpu_pages"]

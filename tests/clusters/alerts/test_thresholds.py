"""Thresholds that operators set: for all clusters, for one, and back to the default."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from pytest_django import Settings

from clusters.alerts.limits import AlertLimits
from clusters.alerts.rules import RULES
from clusters.alerts.thresholds import GIB, THRESHOLDS, load_limits
from clusters.models import AlertThreshold
from tests.clusters.alerts.world import World, states
from tests.clusters.builders import cluster
from tests.people import api_client, client_of, make_operator
from workspaces.models import AuditEvent

pytestmark = pytest.mark.django_db
API = "/api/v1/alerts/thresholds/"
PAGE = "/alerts/thresholds/"


def patch(query: str = "", **values: Any) -> Any:
    return api_client(make_operator()).patch(f"{API}{query}", values, "application/json")


def told(query: str = "") -> dict[str, tuple[float | None, float]]:
    rows = api_client(make_operator()).get(f"{API}{query}").json()
    return {row["name"]: (row["value"], row["default"]) for row in rows}


class TestTable:
    def test_has_every_number_of_the_rules(self) -> None:
        numbers = {field.name for field in fields(AlertLimits) if field.type == "float"}
        # These two are for all rules alike.
        assert {threshold.limit for threshold in THRESHOLDS} == numbers - {"lasting_s", "hold_s"}

    def test_names_rules_that_there_are(self) -> None:
        assert {threshold.kind for threshold in THRESHOLDS} <= RULES.keys()


class TestPrecedence:
    def test_a_clusters_value_beats_that_of_all_and_that_the_setting(self, settings: Settings) -> None:
        settings.ALERT_GPU_CELSIUS = 91
        World("GPU-a", cluster="local")
        assert told()["gpu_c"] == (None, 91)
        patch(gpu_c=85)
        patch("?cluster=local", gpu_c=70)
        assert told()["gpu_c"] == (85, 91)
        assert told("?cluster=local")["gpu_c"] == (70, 85)
        limits = load_limits()
        assert (limits.of(None).gpu_c, limits.of(cluster().pk).gpu_c) == (85, 70)

    def test_null_removes_it(self) -> None:
        patch(gpu_c=85, disk_free_gib=2)
        patch(gpu_c=None)
        assert (load_limits().common.gpu_c, load_limits().common.disk_free_bytes) == (90, 2 * GIB)
        assert AuditEvent.objects.filter(verb="alert_thresholds.changed").count() == 2

    def test_a_value_that_a_later_version_set_is_ignored(self) -> None:
        AlertThreshold.objects.create(name="cosmic_rays", value=7, set_by="ann")
        assert load_limits().common == AlertLimits()


class TestEffect:
    def test_a_lower_temperature_fires_in_that_cluster_only(self) -> None:
        here, there = World("GPU-a"), World("GPU-b", name="beta", cluster="other")
        patch("?cluster=other", gpu_c=50)
        for world in (here, there):
            world.set(world.node.gpus.get().uuid, temperature_c=61.0)
        for _ in range(8):
            here.report()
            there.tick()
            here.now = there.now
        assert states("gpu_hot") == ["firing"]

    def test_0_switches_a_rule_off_and_clears_its_alerts(self) -> None:
        world = World("GPU-a")
        world.set("GPU-a", temperature_c=95.0)
        world.minutes(1.5)
        assert states("gpu_hot") == ["firing"]
        patch("?cluster=local", gpu_c=0, gpu_memory_c=0)
        world.minutes(1.5)
        assert states("gpu_hot") == ["cleared"]


class TestRefusals:
    @pytest.mark.parametrize(
        ("values", "field"),
        [
            ({"gpu_c": -1}, "gpu_c"),
            ({"gpu_c": "nan"}, "gpu_c"),
            ({"gpu_memory_pct": 101}, "gpu_memory_pct"),
            ({"silent_s": "soon"}, "silent_s"),
            ({"cosmic_rays": 1}, "cosmic_rays"),
        ],
    )
    def test_names_the_field(self, values: dict[str, Any], field: str) -> None:
        answer = patch(**values)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, field)
        assert not AlertThreshold.objects.exists()

    def test_an_unknown_cluster_is_not_there(self) -> None:
        assert patch("?cluster=none", gpu_c=1).status_code == 404


class TestPage:
    def test_shows_the_default_beside_the_value_and_stores_it(self) -> None:
        client = client_of(make_operator())
        assert "90 °C" in client.get(PAGE).content.decode()
        answer = client.post(PAGE, {"gpu_c": "82.5"}, follow=True)
        assert "The thresholds were changed." in answer.content.decode()
        assert 'value="82.5"' in answer.content.decode()
        assert told()["gpu_c"] == (82.5, 90)

    @pytest.mark.parametrize(
        ("typed", "message"),
        [
            ("400", "must be between 0 (which switches the rule off) and 150"),
            ("-1", "must be between 0 (which switches the rule off) and 150"),
            ("nan", "must be a number, or empty for the default"),
            ("hot", "must be a number, or empty for the default"),
        ],
    )
    def test_tells_what_is_wrong_under_the_field_and_keeps_what_was_typed(
        self, typed: str, message: str
    ) -> None:
        answer = client_of(make_operator()).post(PAGE, {"gpu_c": typed, "port_s": "7"})
        page = answer.content.decode()
        assert answer.status_code == 400
        assert page.count('role="alert"') == 1
        assert message in page
        assert f'value="{typed}"' in page
        assert 'value="7"' in page
        assert not AlertThreshold.objects.exists()

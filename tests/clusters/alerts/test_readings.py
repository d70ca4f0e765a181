"""Rules over several readings: which one their sentence names, and what they do without a usable one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clusters.alerts.facts import gpu, node
from tests.clusters.alerts.test_rules import evaluate_nodes, kinds
from tests.clusters.alerts.world import World, states


@pytest.mark.parametrize(
    ("readings", "sentence"),
    [
        ({"throttled_hardware_pct": 60.0}, "GPU 0 of alpha is slowed by its hardware at 61 °C. Check power"),
        (
            {"throttled_hardware_pct": 60.0, "temperature_c": None},
            "GPU 0 of alpha is slowed by its hardware. Check power",
        ),
        ({"memory_temperature_c": 104.0}, "The memory of GPU 0 of alpha is 104 °C hot. Check fans"),
        (
            {"temperature_c": 93.0, "memory_temperature_c": 104.0},
            "GPU 0 of alpha is 93 °C hot and its memory is 104 °C hot. Check fans",
        ),
    ],
)
def test_the_sentence_names_what_is_wrong(readings: dict[str, float | None], sentence: str) -> None:
    (case,) = evaluate_nodes(node(gpu(mean=readings))).cases.values()
    assert case.match.sentence.startswith(sentence)


@pytest.mark.parametrize(
    ("missing", "kind"),
    [
        ({"disk_free_bytes": None}, "node_disk"),
        ({"memory_used_bytes": None}, "node_memory"),
        ({"memory_bytes": None}, "node_memory"),
    ],
)
def test_a_rule_about_a_machine_does_not_decide_without_its_reading(
    missing: dict[str, Any], kind: str
) -> None:
    outcome = evaluate_nodes(node(**missing))
    assert kinds(outcome) == []
    assert outcome.unknown_scopes == {f"{kind}:1"}


@pytest.mark.django_db
def test_a_rule_that_fails_over_an_odd_reading_is_logged_once_and_the_others_fire(
    caplog: pytest.LogCaptureFixture,
) -> None:
    odd: Any = "hot"
    world = World("GPU-a")
    world.set("GPU-a", temperature_c=odd)
    world.lose("GPU-a")
    world.tick(times=3)
    assert caplog.text.count("The rule gpu_hot failed; this is logged only once") == 1
    assert states("gpu_lost") == ["firing"]

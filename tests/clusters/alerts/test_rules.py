"""Each rule by itself: what it finds in one moment's facts, what it does not, and where it says that it does
not know."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clusters.alerts.evaluation import RuleEvaluation, evaluate_rules
from clusters.alerts.facts import (
    CounterGrowth,
    GpuFacts,
    LeaseFacts,
    NodeFacts,
    RankSilence,
    RecentEvent,
    RunSilence,
)
from clusters.alerts.limits import AlertLimits, LimitTable
from clusters.alerts.rules import RULES, RUN_RULES
from tests.clusters.alerts.facts import GIB, LEASE, gpu, node
from tests.clusters.alerts.test_alert_store import SCENARIOS

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "alerts.md"
Make = Callable[[], NodeFacts]
STRAY = {"pid": 9, "name": "jupyter", "user": "bob", "run": "", "memory_bytes": 40 * GIB}

FIRING: dict[str, tuple[Make, str]] = {
    "gpu_idle": (lambda: node(gpu(mean={"utilization_pct": 0.0}, processes=())), "no process is on it"),
    "gpu_hang": (
        lambda: node(gpu(mean={"utilization_pct": 100.0, "power_w": 110.0})),
        "100 % utilisation and draws only 110 W",
    ),
    "gpu_throttled": (lambda: node(gpu(mean={"throttled_thermal_pct": 60.0})), "is slowed by heat at 61 °C"),
    "gpu_hot": (lambda: node(gpu(mean={"temperature_c": 93.0})), "is 93 °C hot"),
    "gpu_memory": (lambda: node(gpu(mean={"memory_used_bytes": 139.0 * GIB})), "139.0 of 140.0 GiB"),
    "gpu_ecc": (lambda: node(gpu(ecc_growth=CounterGrowth(2, 30.0))), "could not be corrected (2 more)"),
    "gpu_xid": (
        lambda: node(gpu(events=[RecentEvent("xid", 30.0, 79)])),
        "XID 79: the GPU has fallen off the bus",
    ),
    "gpu_rows": (lambda: node(gpu(counters={"remapped_rows_pending": 1})), "memory rows at its next reset"),
    "gpu_pages": (lambda: node(gpu(counters={"retired_pages_pending": 1})), "memory pages at its next reset"),
    "gpu_pcie": (
        lambda: node(gpu(counters={"pcie_width": 8, "pcie_width_max": 16})),
        "8 PCIe lanes instead of 16",
    ),
    "gpu_lost": (
        lambda: node(gpu(state="lost", error="GPU is lost")),
        "cannot continue, and the GPU gets no new runs. GPU is lost.",
    ),
    "gpu_stray": (
        lambda: node(gpu(lease=None, processes=(STRAY,))),
        "process 9 (jupyter of bob) uses 40.0 GiB",
    ),
    "node_silent": (
        lambda: node(gpu(), is_reporting=False, silence_s=45.0, leases=(LEASE,)),
        "1 run cannot continue without it",
    ),
    "node_nvml": (
        lambda: node(nvml="The driver and its library do not match."),
        "cannot be read: The driver",
    ),
    "node_disk": (lambda: node(disk_free_bytes=GIB), "Only 1.0 GiB are free"),
    "node_memory": (lambda: node(memory_used_bytes=63.0 * GIB), "63 of 64 GiB"),
    "node_port": (lambda: node(ports={"mlx5_0/1": False}), "Port mlx5_0/1 of alpha was active and is down"),
    "node_clock": (lambda: node(clock_offset_s=3600.0), "3600 s behind"),
    "run_unbalanced": (
        lambda: node(gpu("GPU-a"), gpu("GPU-b", 1, mean={"utilization_pct": 20.0})),
        "GPU 1 of alpha (rank 1) works at 20 % while",
    ),
    "run_silent": (
        lambda: node(leases=(silent_lease(40, 31),)),
        "no output and no metric for 31 min. Silent the longest: rank 1 on alpha (40 min), "
        "rank 0 on alpha (31 min)",
    ),
}
UNKNOWN: dict[str, GpuFacts] = {
    "gpu_idle": gpu(mean={"utilization_pct": None}, processes=()),
    "gpu_hang": gpu(mean={"utilization_pct": 100.0, "power_w": None}),
    "gpu_throttled": gpu(mean={"throttled_thermal_pct": None, "throttled_hardware_pct": None}),
    "gpu_hot": gpu(mean={"temperature_c": None}),
    "gpu_memory": gpu(mean={"memory_used_bytes": None}),
    "gpu_rows": gpu(),
    "gpu_pages": gpu(),
    "gpu_pcie": gpu(counters={"pcie_width": 8}),
}
OFF = {
    "gpu_idle": AlertLimits(idle_minutes=0),
    "gpu_hang": AlertLimits(hang_minutes=0),
    "gpu_throttled": AlertLimits(throttle_s=0),
    "gpu_hot": AlertLimits(gpu_c=0, gpu_memory_c=0),
    "gpu_memory": AlertLimits(gpu_memory_pct=0),
    "gpu_ecc": AlertLimits(ecc=False),
    "gpu_xid": AlertLimits(xid_quiet_minutes=0),
    "gpu_rows": AlertLimits(remapped_rows=False),
    "gpu_pages": AlertLimits(retired_pages=False),
    "gpu_pcie": AlertLimits(pcie_minutes=0),
    "gpu_lost": AlertLimits(gpu_lost=False),
    "gpu_stray": AlertLimits(stray_minutes=0),
    "node_silent": AlertLimits(silent_s=0),
    "node_nvml": AlertLimits(nvml_s=0),
    "node_disk": AlertLimits(disk_free_bytes=0),
    "node_memory": AlertLimits(host_memory_pct=0),
    "node_port": AlertLimits(port_s=0),
    "node_clock": AlertLimits(clock_s=0),
    "run_unbalanced": AlertLimits(unbalanced_minutes=0),
    "run_silent": AlertLimits(run_silent_minutes=0),
}


def silent_lease(*minutes: float) -> LeaseFacts:
    """The lease of a run whose ranks, the last one first, have been silent for so long."""
    ranks = [
        RankSilence(rank, "alpha", each * 60)
        for rank, each in zip(reversed(range(len(minutes))), minutes, strict=True)
    ]
    return replace(LEASE, silence=RunSilence(ranks[-1].silent_s, ranks))


def kinds(outcome: RuleEvaluation) -> list[str]:
    return sorted({case.rule.kind for case in outcome.cases.values()})


def evaluate_nodes(*nodes: NodeFacts, limits: AlertLimits | None = None) -> RuleEvaluation:
    return evaluate_rules(nodes, LimitTable(limits or AlertLimits()))


class TestEveryRule:
    def test_has_facts_that_fire_it_and_limits_that_switch_it_off(self) -> None:
        assert FIRING.keys() == OFF.keys() == RULES.keys()

    def test_of_a_gpu_or_a_node_fires_and_clears_on_a_node_in_the_database(self) -> None:
        assert SCENARIOS.keys() == RULES.keys() - {rule.kind for rule in RUN_RULES}

    def test_is_documented_with_its_severity(self) -> None:
        rows = dict(re.findall(r"^\| `([a-z_]+)` \| ([^|]+) \|", DOCUMENT.read_text(), re.MULTILINE))
        assert rows.keys() == RULES.keys()
        for kind, severity in rows.items():
            assert severity == "by its code" or severity.startswith(RULES[kind].severity), kind


class TestEachRule:
    @pytest.mark.parametrize("kind", FIRING)
    def test_finds_what_it_is_for_and_nothing_else(self, kind: str) -> None:
        make, words = FIRING[kind]
        outcome = evaluate_nodes(make())
        assert kinds(outcome) == [kind]
        (case,) = outcome.cases.values()
        assert words in case.match.sentence
        assert "alpha" in case.match.sentence

    @pytest.mark.parametrize("kind", OFF)
    def test_is_switched_off_by_0(self, kind: str) -> None:
        assert kinds(evaluate_nodes(FIRING[kind][0](), limits=OFF[kind])) == []

    @pytest.mark.parametrize("kind", UNKNOWN)
    def test_says_that_it_does_not_know_rather_than_take_it_for_0(self, kind: str) -> None:
        outcome = evaluate_nodes(node(UNKNOWN[kind]))
        assert kinds(outcome) == []
        assert f"{kind}:GPU-a" in outcome.unknown_scopes

    def test_that_fails_is_named_and_silences_no_other(self) -> None:
        odd: Any = {"temperature_c": "hot", "memory_used_bytes": 139.0 * GIB}
        for _ in range(2):  # judging remembers nothing
            outcome = evaluate_nodes(node(gpu(mean=odd)))
            assert list(outcome.failures) == ["gpu_hot"]
            assert isinstance(outcome.failures["gpu_hot"], TypeError)
            assert "gpu_hot:GPU-a" in outcome.unknown_scopes
            assert kinds(outcome) == ["gpu_memory"]

    def test_a_healthy_node_has_no_case(self) -> None:
        assert kinds(evaluate_nodes(node(gpu("GPU-a"), gpu("GPU-b", 1)))) == []


class TestNotFound:
    @pytest.mark.parametrize(
        "healthy",
        [
            node(gpu(lease=None, mean={"utilization_pct": 0.0}, processes=())),
            node(gpu(mean={"utilization_pct": 1.0}, peak={"utilization_pct": 40.0})),
            node(gpu(mean={"throttled_power_pct": 100.0})),
            node(gpu(ecc_growth=CounterGrowth(1, 2 * 3600.0))),
            node(gpu(events=[RecentEvent("xid", 90.0, 79), RecentEvent("back", 30.0)])),
            node(gpu(events=[RecentEvent("xid", 90.0, 79), RecentEvent("restarted", 30.0)])),
            node(gpu(lease=None, processes=({**STRAY, "memory_bytes": 300 * 2**20},))),
            node(gpu(lease=None, processes=({**STRAY, "run": "b" * 32},))),
            node(gpu(lease=None, processes=(STRAY,)), is_monitor_only=True),
            node(gpu(), is_reporting=False, silence_s=45.0, is_drained=True),
            node(
                gpu("GPU-a", mean={"utilization_pct": 20.0}), gpu("GPU-b", 1, mean={"utilization_pct": 5.0})
            ),
        ],
        ids=[
            "free",
            "a burst",
            "power cap",
            "ECC long ago",
            "back",
            "restarted",
            "small",
            "a run's",
            "watched",
            "drained",
            "lazy",
        ],
    )
    def test_is_what_only_looks_like_it(self, healthy: NodeFacts) -> None:
        assert kinds(evaluate_nodes(healthy)) == []


class TestSilentRun:
    def test_is_not_silent_while_a_gpu_works(self) -> None:
        lease = silent_lease(31)
        idle, busy = gpu("GPU-a", lease=lease, mean={"utilization_pct": 0.0}), gpu("GPU-b", 1, lease=lease)
        assert "run_silent" in kinds(evaluate_nodes(node(idle)))
        assert "run_silent" not in kinds(evaluate_nodes(node(idle, busy)))

    def test_is_unknown_while_a_gpu_reports_no_utilisation(self) -> None:
        outcome = evaluate_nodes(node(gpu(lease=silent_lease(31), mean={"utilization_pct": None})))
        assert f"run_silent:{LEASE.holder}" in outcome.unknown_scopes

    def test_is_unknown_while_one_of_its_nodes_does_not_report(self) -> None:
        lease = silent_lease(31)
        away = node(pk=2, is_reporting=False, leases=(lease,))
        outcome = evaluate_nodes(node(leases=(lease,)), away)
        assert f"run_silent:{LEASE.holder}" in outcome.unknown_scopes

    def test_names_three_ranks_at_most(self) -> None:
        (case,) = evaluate_nodes(node(leases=(silent_lease(60, 50, 40, 35),))).cases.values()
        assert "rank 3 on alpha (60 min), rank 2 on alpha (50 min), rank 1 on alpha (40 min). Find" in (
            case.match.sentence
        )
        assert (case.node, case.match.facts["rank"]) == (1, 3)

    def test_a_short_silence_is_none(self) -> None:
        assert kinds(evaluate_nodes(node(leases=(silent_lease(45, 29),)))) == []


class TestGravity:
    def test_an_xid_is_as_grave_as_its_code(self) -> None:
        xid_events = [RecentEvent("xid", 10.0, code) for code in (13, 79, 79, 4711)]
        cases = evaluate_nodes(node(gpu(events=xid_events))).cases
        grave = {case.match.subkey: case.severity for case in cases.values()}
        assert grave == {"13": "warning", "79": "critical", "4711": "warning"}
        assert "XID 79, 2 times" in cases["gpu_xid:GPU-a:79"].match.sentence

    def test_rows_that_could_not_be_remapped_are_critical_and_a_case_of_their_own(self) -> None:
        pending, failed = (
            evaluate_nodes(node(gpu(counters={name: 1})))
            for name in ("remapped_rows_pending", "remapped_rows_failed")
        )
        assert [case.severity for case in (*pending.cases.values(), *failed.cases.values())] == [
            "warning",
            "critical",
        ]
        assert set(pending.cases) != set(failed.cases)


class TestUnheard:
    def test_of_a_silent_node_only_its_silence_is_known(self) -> None:
        outcome = evaluate_nodes(
            node(gpu(state="lost"), is_reporting=False, silence_s=45.0, disk_free_bytes=GIB, nvml="gone")
        )
        assert kinds(outcome) == ["node_silent"]
        assert outcome.silent_nodes == {1}

    def test_a_run_with_a_gpu_there_is_not_called_unbalanced(self) -> None:
        here = node(gpu("GPU-a"), gpu("GPU-b", 1, mean={"utilization_pct": 5.0}))
        outcome = evaluate_nodes(here, node(gpu("GPU-c"), pk=2, is_reporting=False))
        assert f"run_unbalanced:{LEASE.holder}" in outcome.unknown_scopes

    def test_gpus_that_are_lost_with_their_library_are_not_told_one_by_one(self) -> None:
        outcome = evaluate_nodes(node(gpu(state="lost"), nvml="The driver is gone."))
        assert kinds(outcome) == ["node_nvml"]
        assert "gpu_lost:GPU-a" in outcome.unknown_scopes

    def test_a_mig_device_is_judged_by_its_processes(self) -> None:
        device: dict[str, Any] = {"mean": {"utilization_pct": None}, "parent": "GPU-z"}
        process = {"pid": 7, "name": "python", "run": LEASE.holder, "memory_bytes": GIB}
        assert kinds(evaluate_nodes(node(gpu(**device, processes=({**process, "sm_pct": 0.0},))))) == [
            "gpu_idle"
        ]
        assert kinds(evaluate_nodes(node(gpu(**device, processes=({**process, "sm_pct": 70.0},))))) == []
        assert (
            "gpu_idle:GPU-a"
            in evaluate_nodes(node(gpu(**device, processes=({**process, "sm_pct": None},)))).unknown_scopes
        )

"""The table of rules: what fires, with which severity and after which delay (docs/alerts.md)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from clusters.alerts import gpu_rules, node_rules
from clusters.alerts.facts import GpuFacts, NodeFacts, RuleResult
from clusters.alerts.limits import AlertLimits
from clusters.alerts.node_rules import RunFacts
from trainhub_launch.severity import CRITICAL, WARNING

MINUTE = 60.0


def no_delay(_: AlertLimits) -> float:
    return 0.0


@dataclass(frozen=True)
class AlertRule:
    """A row of the table of rules. `delay_s`: how long the condition has to hold before the alert fires;
    `max_gap_s`: a shorter absence does not restart the delay. `clear_after_s`: how long the condition has to
    be absent before the alert clears, so that an unstable condition fires once; ALERT_HOLD_SECONDS is the
    upper bound."""

    kind: str
    title: str
    is_enabled: Callable[[AlertLimits], object]
    severity: str = WARNING
    delay_s: Callable[[AlertLimits], float] = no_delay
    max_gap_s: float = 0.0
    clear_after_s: float = math.inf


@dataclass(frozen=True)
class GpuRule(AlertRule):
    """A rule about one GPU. `per_holder`: each holder of the GPU is a case of its own."""

    condition: Callable[[GpuFacts, NodeFacts, AlertLimits], RuleResult] = gpu_rules.lost
    per_holder: bool = False


@dataclass(frozen=True)
class NodeRule(AlertRule):
    """A rule about one node. `applies_to_silent`: the rule is also evaluated for nodes that do not report."""

    condition: Callable[[NodeFacts, AlertLimits], RuleResult] = node_rules.silent
    applies_to_silent: bool = False


@dataclass(frozen=True)
class RunRule(AlertRule):
    condition: Callable[[RunFacts, AlertLimits], RuleResult] = node_rules.unbalanced


GPU_RULES = (
    GpuRule(
        "gpu_idle",
        "GPU held but idle",
        lambda on: on.idle_minutes,
        WARNING,
        lambda on: on.idle_minutes * MINUTE,
        condition=gpu_rules.idle,
        per_holder=True,
    ),
    GpuRule(
        "gpu_hang",
        "Busy at idle power",
        lambda on: on.hang_minutes,
        CRITICAL,
        lambda on: on.hang_minutes * MINUTE,
        condition=gpu_rules.hang,
        per_holder=True,
    ),
    GpuRule(
        "gpu_throttled",
        "GPU slowed down",
        lambda on: on.throttle_s,
        WARNING,
        lambda on: on.throttle_s,
        # Two buckets of telemetry: a GPU that is slowed by heat recovers for moments.
        max_gap_s=20.0,
        condition=gpu_rules.throttled,
    ),
    GpuRule(
        "gpu_hot",
        "GPU too hot",
        lambda on: on.gpu_c or on.gpu_memory_c,
        WARNING,
        lambda on: on.lasting_s,
        condition=gpu_rules.hot,
    ),
    GpuRule(
        "gpu_memory",
        "GPU memory nearly full",
        lambda on: on.gpu_memory_pct,
        WARNING,
        lambda on: on.lasting_s,
        condition=gpu_rules.gpu_memory,
        per_holder=True,
    ),
    GpuRule(
        # The condition itself lasts until a quiet time has passed, so no further delay before it clears.
        "gpu_ecc",
        "Memory errors not corrected",
        lambda on: on.ecc,
        CRITICAL,
        clear_after_s=0.0,
        condition=gpu_rules.ecc,
    ),
    GpuRule(
        "gpu_xid",
        "XID error",
        lambda on: on.xid_quiet_minutes,
        WARNING,
        clear_after_s=0.0,
        condition=gpu_rules.xid_errors,
    ),
    GpuRule(
        "gpu_rows",
        "Memory rows to be remapped",
        lambda on: on.remapped_rows,
        WARNING,
        condition=gpu_rules.remapped_rows,
    ),
    GpuRule(
        "gpu_pages",
        "Memory pages to be retired",
        lambda on: on.retired_pages,
        WARNING,
        condition=gpu_rules.retired_pages,
    ),
    GpuRule(
        "gpu_pcie",
        "Fewer PCIe lanes",
        lambda on: on.pcie_minutes,
        WARNING,
        lambda on: on.pcie_minutes * MINUTE,
        condition=gpu_rules.pcie_width,
    ),
    GpuRule(
        "gpu_lost", "GPU lost", lambda on: on.gpu_lost, CRITICAL, condition=gpu_rules.lost, clear_after_s=10.0
    ),
    GpuRule(
        "gpu_stray",
        "Free GPU in use",
        lambda on: on.stray_minutes,
        WARNING,
        lambda on: on.stray_minutes * MINUTE,
        condition=gpu_rules.stray,
    ),
)
NODE_RULES = (
    NodeRule(
        "node_silent",
        "Node silent",
        lambda on: on.silent_s,
        CRITICAL,
        condition=node_rules.silent,
        applies_to_silent=True,
        clear_after_s=10.0,
    ),
    NodeRule(
        "node_nvml",
        "GPUs cannot be read",
        lambda on: on.nvml_s,
        CRITICAL,
        lambda on: on.nvml_s,
        condition=node_rules.nvml,
        clear_after_s=10.0,
    ),
    NodeRule(
        "node_disk", "Disk nearly full", lambda on: on.disk_free_bytes, CRITICAL, condition=node_rules.disk
    ),
    NodeRule(
        "node_memory",
        "Memory nearly full",
        lambda on: on.host_memory_pct,
        WARNING,
        lambda on: on.lasting_s,
        condition=node_rules.memory,
    ),
    NodeRule(
        "node_port",
        "Fast network port down",
        lambda on: on.port_s,
        CRITICAL,
        lambda on: on.port_s,
        condition=node_rules.ports,
        clear_after_s=30.0,
    ),
    NodeRule(
        "node_clock",
        "Clock off",
        lambda on: on.clock_s,
        WARNING,
        lambda on: on.lasting_s,
        condition=node_rules.clock,
    ),
)
RUN_RULES = (
    RunRule(
        "run_unbalanced",
        "Ranks unbalanced",
        lambda on: on.unbalanced_minutes,
        WARNING,
        lambda on: on.unbalanced_minutes * MINUTE,
        max_gap_s=30.0,
        condition=node_rules.unbalanced,
    ),
    # The silence itself is as long as the threshold, and it ends with the first sign of life.
    RunRule(
        "run_silent",
        "Run silent",
        lambda on: on.run_silent_minutes,
        WARNING,
        clear_after_s=0.0,
        condition=node_rules.quiet,
    ),
)


def is_about_run(rule: AlertRule | None) -> bool:
    """Returns whether an alert of the rule is about a run, and not about a machine."""
    return isinstance(rule, RunRule) or (isinstance(rule, GpuRule) and rule.per_holder)


RULES: dict[str, AlertRule] = {rule.kind: rule for rule in (*GPU_RULES, *NODE_RULES, *RUN_RULES)}

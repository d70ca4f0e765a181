"""Conditions of one node, and of the runs that hold GPUs, maybe on several nodes."""
# ruff: noqa: ARG001 - every condition takes the same

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clusters.alerts.facts import HOLDER, GpuFacts, LeaseFacts, NodeFacts, RuleMatch, RuleResult
from clusters.alerts.limits import AlertLimits
from clusters.node_reports import node_clock, node_events

OTHERS_PCT = 30.0
"""Below that the others do not work hard enough for a slow one to hold them up."""
GIB = 2**30


@dataclass(frozen=True)
class RunFacts:
    """A holder of GPUs with all of them: those of nodes that are not heard are there without numbers."""

    lease: LeaseFacts
    gpus: Sequence[tuple[NodeFacts, GpuFacts]]


def silent(node: NodeFacts, limits: AlertLimits) -> RuleResult:
    if node.is_drained:
        return ()
    if node.silence_s < limits.silent_s:
        return ()
    runs = len({held.holder for held in node.holders})
    then = f" {runs} run{'s' if runs > 1 else ''} cannot go on without it." if runs else ""
    sentence = (
        f"{node.name} does not report any more.{then} Check that the machine is up, that it reaches the "
        "hub, and "
        "that the agent runs there: systemctl status trainhub-node."
    )
    return (RuleMatch(sentence, {"runs": runs}),)


def nvml(node: NodeFacts, limits: AlertLimits) -> RuleResult:
    sentence = (
        f"The GPUs of {node.name} cannot be read: {node.nvml.rstrip('.')}. Until then it takes no "
        "run with GPUs."
    )
    return (RuleMatch(sentence, {"error": node.nvml}),) if node.nvml else ()


def disk(node: NodeFacts, limits: AlertLimits) -> RuleResult:
    free = node.disk_free_bytes
    if free is None:
        return None
    if free >= limits.disk_free_bytes:
        return ()
    return (RuleMatch(f"{node.name}: {node_events.disk_sentence(int(free))}", {"free_bytes": free}),)


def memory(node: NodeFacts, limits: AlertLimits) -> RuleResult:
    used = node.memory_used_bytes
    if used is None or not node.memory_bytes:
        return None
    share = 100 * used / node.memory_bytes
    if share < limits.host_memory_pct:
        return ()
    sentence = (
        f"The memory of {node.name} is nearly full: {used / GIB:.0f} of {node.memory_bytes / GIB:.0f} GiB. "
        "The kernel will end "
        "processes when it is. Fewer data-loader workers or smaller caches make room."
    )
    return (RuleMatch(sentence, {"percent": share}),)


def ports(node: NodeFacts, limits: AlertLimits) -> RuleResult:
    return tuple(
        RuleMatch(
            f"Port {name} of {node.name} was active and is down: runs over several nodes fall back to "
            "slower ways, or fail. "
            "Check the cable and the switch.",
            {"port": name},
            subkey=name,
        )
        for name, is_active in sorted(node.ports.items())
        if not is_active
    )


def clock(node: NodeFacts, limits: AlertLimits) -> RuleResult:
    if abs(node.clock_offset_s) < limits.clock_s:
        return ()
    return (
        RuleMatch(
            f"{node.name}: {node_clock.offset_sentence(node.clock_offset_s)}",
            {"offset_s": node.clock_offset_s},
        ),
    )


def unbalanced(run: RunFacts, limits: AlertLimits) -> RuleResult:
    """One GPU of a run does less than half of what the others do: they wait for it, or it has nothing to
    do."""
    known = [
        (gpu.mean["utilization_pct"], node, gpu) for node, gpu in run.gpus if "utilization_pct" in gpu.mean
    ]
    if len(known) < len(run.gpus) or len(known) < 2:
        return () if len(run.gpus) < 2 else None
    known.sort(key=lambda item: item[0])
    least, node, gpu = known[0]
    others = sum(item[0] for item in known[1:]) / (len(known) - 1)
    if others <= OTHERS_PCT or least >= others / 2:
        return ()
    rank = next((item["rank"] for item in gpu.processes if item.get("rank") is not None), None)
    whose = f"GPU {gpu.index} of {node.name}" + ("" if rank is None else f" (rank {rank})")
    sentence = (
        f"{whose} works at {least:.0f} % while the other GPUs of {HOLDER} work at {others:.0f} %. "
        "Look whether its rank loads data slower, has less to do, or whether that GPU is slowed."
    )
    return (
        RuleMatch(
            sentence, {"least_pct": least, "others_pct": others, "rank": rank}, node=node.pk, gpu=gpu.uuid
        ),
    )

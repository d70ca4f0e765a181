"""Alert conditions of one node, and of runs, whose GPUs may be on several nodes."""
# ruff: noqa: ARG001 - all conditions share one signature

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clusters.alerts.facts import HOLDER, GpuFacts, LeaseFacts, NodeFacts, RuleMatch, RuleResult
from clusters.alerts.limits import AlertLimits
from clusters.node_reports import node_clock, node_events
from trainhub_launch.json_types import JsonValue

# Below this mean utilisation of the other GPUs a slow GPU does not hold them up.
MIN_OTHERS_PCT = 30.0
GIB = 2**30
# Ranks that the sentence about a silent run names.
MAX_NAMED = 3


@dataclass(frozen=True)
class RunFacts:
    """A lease holder with its nodes and all its GPUs; those on silent nodes have no numbers."""

    lease: LeaseFacts
    nodes: Sequence[NodeFacts]
    gpus: Sequence[tuple[NodeFacts, GpuFacts]]

    @property
    def cluster(self) -> int | None:
        """The cluster of the run: all of its nodes are in one."""
        return self.nodes[0].cluster


def silent(node: NodeFacts, limits: AlertLimits) -> RuleResult:
    # Operators drain a machine before they switch it off.
    if node.is_drained:
        return ()
    if node.silence_s < limits.silent_s:
        return ()
    runs = len({lease.holder for lease in node.leases})
    then = f" {runs} run{'s' if runs > 1 else ''} cannot continue without it." if runs else ""
    sentence = (
        f"{node.name} no longer reports.{then} Check that the machine is up, that it reaches the "
        "hub, and that its agent runs: systemctl status trainhub-node."
    )
    return (RuleMatch(sentence, {"runs": runs}),)


def nvml(node: NodeFacts, limits: AlertLimits) -> RuleResult:
    sentence = (
        f"The GPUs of {node.name} cannot be read: {node.nvml.rstrip('.')}. The node takes no runs with "
        "GPUs until they can be read again."
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
        "The kernel ends processes when it is full. Use fewer data-loader workers or smaller caches."
    )
    return (RuleMatch(sentence, {"percent": share}),)


def ports(node: NodeFacts, limits: AlertLimits) -> RuleResult:
    return tuple(
        RuleMatch(
            f"Port {name} of {node.name} was active and is down: runs over several nodes fall back to "
            "slower connections, or fail. Check the cable and the switch.",
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
    """Matches a run of which one GPU has less than half the utilization of the others: they wait for it, or
    it lacks work."""
    readings = [
        (gpu.mean["utilization_pct"], node, gpu) for node, gpu in run.gpus if "utilization_pct" in gpu.mean
    ]
    # A GPU without numbers, on a silent node for example, may be the slow one.
    if len(readings) < len(run.gpus) or len(readings) < 2:
        return () if len(run.gpus) < 2 else None
    readings.sort(key=lambda item: item[0])
    lowest, node, gpu = readings[0]
    others = sum(item[0] for item in readings[1:]) / (len(readings) - 1)
    if others <= MIN_OTHERS_PCT or lowest >= others / 2:
        return ()
    rank = next((item["rank"] for item in gpu.processes if item.get("rank") is not None), None)
    gpu_text = f"GPU {gpu.index} of {node.name}" + ("" if rank is None else f" (rank {rank})")
    sentence = (
        f"{gpu_text} works at {lowest:.0f} % while the other GPUs of {HOLDER} work at {others:.0f} %. "
        "Check whether its rank loads data more slowly or has less work, or whether that GPU is slowed down."
    )
    return (
        RuleMatch(
            sentence, {"least_pct": lowest, "others_pct": others, "rank": rank}, node=node.pk, gpu=gpu.uuid
        ),
    )


def quiet(run: RunFacts, limits: AlertLimits) -> RuleResult:
    """Matches a run at work of which no rank writes, no metric arrives and no GPU is used."""
    silence = run.lease.silence
    if silence is None or not silence.ranks or silence.silent_s < limits.run_silent_minutes * 60:
        return ()
    # Output of a node that does not report may be waiting there.
    if not all(node.is_reporting for node in run.nodes):
        return None
    peaks = [gpu.peak.get("utilization_pct") for _, gpu in run.gpus]
    if any(peak is not None and peak >= limits.idle_pct for peak in peaks):
        return ()
    if None in peaks:
        return None
    longest = silence.ranks[:MAX_NAMED]
    named = ", ".join(f"rank {item.rank} on {item.node} ({item.silent_s / 60:.0f} min)" for item in longest)
    idle = " and its GPUs are idle" if run.gpus else ""
    sentence = (
        f"{HOLDER} has given no output and no metric for {silence.silent_s / 60:.0f} min{idle}. Silent the "
        f"longest: {named}. Find out with py-spy what these ranks wait for, and end the run if it makes no "
        "progress."
    )
    first = longest[0]
    place = next((node.pk for node in run.nodes if node.name == first.node), run.nodes[0].pk)
    facts: dict[str, JsonValue] = {"silent_s": silence.silent_s, "rank": first.rank}
    return (RuleMatch(sentence, facts, node=place),)

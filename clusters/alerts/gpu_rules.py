"""Conditions of one GPU. Each: None where the facts do not tell, else what was found, which may be
nothing."""
# ruff: noqa: ARG001 - every condition takes the same

from __future__ import annotations

from clusters.alerts.facts import HOLDER, GpuFacts, NodeFacts, RecentEvent, RuleMatch, RuleResult
from clusters.alerts.limits import AlertLimits
from trainhub_launch.gpus.xid import xid
from trainhub_launch.machine import GPU_LOST
from trainhub_launch.severity import CRITICAL, WARNING

BUSY_PCT = 95.0
THROTTLED_PCT = 10.0
"""Share of the time in which the clocks were lowered, from where on it costs speed that somebody notices."""
QUIET_MINUTES = 60.0
AT_REST = "Drain the node and reset the GPU when it is free."
GIB = 2**30
STRAY_BYTES = GIB
"""A desktop, or a monitor's own context, takes less."""


def where(gpu: GpuFacts, node: NodeFacts) -> str:
    return f"GPU {gpu.index} of {node.name}"


def idle(gpu: GpuFacts, node: NodeFacts, limits: AlertLimits) -> RuleResult:
    """Held, and nothing works on it."""
    if gpu.lease is None:
        return ()
    highest = gpu.peak.get("utilization_pct", _busiest(gpu))
    if highest is None:
        return None
    if highest >= limits.idle_pct:
        return ()
    how = (
        f"its processes use less than {limits.idle_pct:g} % of it" if gpu.processes else "no process is on it"
    )
    sentence = (
        f"{where(gpu, node)} is held by {HOLDER} and does not work: {how}. "
        "Look into the log for what the run waits for, or end the run so that others get the GPU."
    )
    return (RuleMatch(sentence, {"highest_pct": highest, "processes": len(gpu.processes)}),)


def hang(gpu: GpuFacts, node: NodeFacts, limits: AlertLimits) -> RuleResult:
    """Every moment a kernel is there, and no power is drawn: ranks that wait for each other look like
    that."""
    busy, power, most = (
        gpu.mean.get("utilization_pct"),
        gpu.mean.get("power_w"),
        gpu.mean.get("power_limit_w"),
    )
    if busy is None or power is None or not most:
        return None
    if busy < BUSY_PCT or power >= most * limits.hang_power_pct / 100:
        return ()
    sentence = (
        f"{where(gpu, node)} says {busy:.0f} % utilisation and draws only {power:.0f} W of {most:.0f} W: a "
        "kernel that waits "
        f"for ever, as in a collective that one rank never reached. It is held by {HOLDER}. Look for the "
        "rank whose log is "
        "silent, take stacks with py-spy there, and end the run if it does not go on."
    )
    return (RuleMatch(sentence, {"utilization_pct": busy, "power_w": power, "power_limit_w": most}),)


def throttled(gpu: GpuFacts, node: NodeFacts, limits: AlertLimits) -> RuleResult:
    heat, hardware = gpu.mean.get("throttled_thermal_pct"), gpu.mean.get("throttled_hardware_pct")
    if heat is None and hardware is None:
        return None
    if max(heat or 0.0, hardware or 0.0) < THROTTLED_PCT:
        return ()
    degrees = gpu.mean.get("temperature_c")
    at = "" if degrees is None else f" at {degrees:.0f} °C"
    if (heat or 0.0) >= THROTTLED_PCT:
        sentence = f"{where(gpu, node)} is slowed by heat{at}. Check fans, air flow and the room's cooling."
    else:
        sentence = (
            f"{where(gpu, node)} is slowed by its hardware{at}. Check power supply, power cables and cooling."
        )
    return (RuleMatch(sentence, {"thermal_pct": heat, "hardware_pct": hardware, "temperature_c": degrees}),)


def hot(gpu: GpuFacts, node: NodeFacts, limits: AlertLimits) -> RuleResult:
    core, memory = gpu.mean.get("temperature_c"), gpu.mean.get("memory_temperature_c")
    if core is None and memory is None:
        return None
    parts = []
    if core is not None and limits.gpu_c and core >= limits.gpu_c:
        parts.append(f"{core:.0f} °C hot")
    if memory is not None and limits.gpu_memory_c and memory >= limits.gpu_memory_c:
        parts.append(f"its memory {memory:.0f} °C hot")
    if not parts:
        return ()
    sentence = (
        f"{where(gpu, node)} is {' and '.join(parts)}. Check fans, air flow and the room's cooling "
        "before it slows down."
    )
    return (RuleMatch(sentence, {"temperature_c": core, "memory_temperature_c": memory}),)


def memory(gpu: GpuFacts, node: NodeFacts, limits: AlertLimits) -> RuleResult:
    used = gpu.mean.get("memory_used_bytes")
    if used is None or not gpu.memory_bytes:
        return None
    taken = used + gpu.mean.get("memory_reserved_bytes", 0.0)
    share = 100 * taken / gpu.memory_bytes
    if share < limits.gpu_memory_pct:
        return ()
    sentence = (
        f"The memory of {where(gpu, node)} is nearly full: {taken / GIB:.1f} of "
        f"{gpu.memory_bytes / GIB:.1f} GiB, "
        f"held by {HOLDER}. What runs there may run out of it: a smaller batch, gradient checkpointing or "
        "sharding makes room."
    )
    return (RuleMatch(sentence, {"percent": share}),)


def ecc(gpu: GpuFacts, node: NodeFacts, limits: AlertLimits) -> RuleResult:
    """Once seen, until it has been quiet for a while or the GPU has begun anew."""
    events = [item for item in _since_reset(gpu, limits) if item.kind == "ecc"]
    grown = gpu.ecc_growth if gpu.ecc_growth is not None and gpu.ecc_growth.age_s <= _counts_for_s(gpu, limits) else None
    if not events and grown is None:
        return ()
    count = "" if grown is None else f" ({grown.by} more)"
    sentence = (
        f"{where(gpu, node)} has had memory errors that could not be corrected{count}; it is held by "
        f"{HOLDER}. What was computed "
        "there may be wrong. Drain the node and reset the GPU; if it comes again, have the GPU replaced."
    )
    return (RuleMatch(sentence, {"grown_by": grown.by if grown else None}),)


def xids(gpu: GpuFacts, node: NodeFacts, limits: AlertLimits) -> RuleResult:
    found: dict[int, int] = {}
    for item in _since_reset(gpu, limits):
        if item.kind == "xid":
            found[item.code] = found.get(item.code, 0) + 1
    return tuple(_xid(gpu, node, code, times) for code, times in found.items())


def rows(gpu: GpuFacts, node: NodeFacts, limits: AlertLimits) -> RuleResult:
    pending, failed = gpu.counters.get("remapped_rows_pending"), gpu.counters.get("remapped_rows_failed")
    if pending is None and failed is None:
        return None
    if failed:
        sentence = (
            f"{where(gpu, node)} has no spare memory rows left: remapping has failed. Drain the "
            "node; replace the GPU."
        )
        return (RuleMatch(sentence, {"failed": failed}, CRITICAL, subkey="failed"),)
    if not pending:
        return ()
    sentence = f"{where(gpu, node)} will set aside bad memory rows at its next reset. {AT_REST}"
    return (RuleMatch(sentence, {"pending": pending}),)


def pages(gpu: GpuFacts, node: NodeFacts, limits: AlertLimits) -> RuleResult:
    pending = gpu.counters.get("retired_pages_pending")
    if pending is None:
        return None
    sentence = f"{where(gpu, node)} will retire bad memory pages at its next reset. {AT_REST}"
    return (RuleMatch(sentence, {"pending": pending}),) if pending else ()


def narrow(gpu: GpuFacts, node: NodeFacts, limits: AlertLimits) -> RuleResult:
    """The width, not the generation: that one falls while a GPU rests, and is meant to."""
    lanes, most = gpu.counters.get("pcie_width"), gpu.counters.get("pcie_width_max")
    if lanes is None or most is None:
        return None
    sentence = (
        f"{where(gpu, node)} talks to its machine over {lanes} PCIe lanes instead of {most}: data reaches "
        "it slower. "
        "Reseat the card or its riser when the machine is free."
    )
    return (RuleMatch(sentence, {"lanes": lanes, "most": most}),) if 0 < lanes < most else ()


def lost(gpu: GpuFacts, node: NodeFacts, limits: AlertLimits) -> RuleResult:
    if gpu.state != GPU_LOST:
        return ()
    if node.nvml:
        # All are lost with the library, which is a case of its own: what is wrong with this one, nobody
        # knows.
        return None
    error = f" ({gpu.error.rstrip('.')})" if gpu.error else ""
    sentence = (
        f"{where(gpu, node)} does not answer any more{error}; it is held by {HOLDER}. What runs on it "
        "cannot go on, and it "
        "gets no new work. Drain the node and restart the machine."
    )
    return (RuleMatch(sentence, {"error": gpu.error}),)


def stray(gpu: GpuFacts, node: NodeFacts, limits: AlertLimits) -> RuleResult:
    """Offered as free, and used by somebody who did not ask."""
    if gpu.lease is not None or node.is_monitor_only:
        return ()
    taking = [
        item
        for item in gpu.processes
        if not item.get("run") and (item.get("memory_bytes") or 0) >= STRAY_BYTES
    ]
    if not taking:
        return ()
    most = max(taking, key=lambda item: item["memory_bytes"])
    who = f" of {most['user']}" if most.get("user") else ""
    sentence = (
        f"{where(gpu, node)} is free for TrainHub, but process {most['pid']} ({most['name']}{who}) takes "
        f"{most['memory_bytes'] / GIB:.1f} GiB of it. "
        "A run that gets this GPU may run out of memory: end the process, or drain the node."
    )
    return (RuleMatch(sentence, {"pid": most["pid"], "memory_bytes": most["memory_bytes"]}),)


def _xid(gpu: GpuFacts, node: NodeFacts, code: int, times: int) -> RuleMatch:
    told = xid(code)
    again = f", {times} times" if times > 1 else ""
    sentence = (
        f"{where(gpu, node)} reported XID {code}{again}: {told.meaning}. It is held by {HOLDER}. "
        f"{told.remedy}"
    )
    return RuleMatch(sentence, {"code": code, "times": times}, told.severity or WARNING, subkey=str(code))


def _busiest(gpu: GpuFacts) -> float | None:
    """Of a MIG device, which tells no utilisation of its own, that of its busiest process, where all tell
    it."""
    shares = [item.get("sm_pct") for item in gpu.processes]
    known = [share for share in shares if share is not None]
    return max(known) if known and len(known) == len(shares) else None


def _counts_for_s(gpu: GpuFacts, limits: AlertLimits) -> float:
    """What is older counts no more: it has been quiet since, or the GPU or its machine has come back."""
    begun = [item.age_s for item in gpu.events if item.kind in ("back", "restarted")]
    return min([(limits.xid_quiet_minutes or QUIET_MINUTES) * 60, *begun])


def _since_reset(gpu: GpuFacts, limits: AlertLimits) -> list[RecentEvent]:
    return [item for item in gpu.events if item.age_s <= _counts_for_s(gpu, limits)]

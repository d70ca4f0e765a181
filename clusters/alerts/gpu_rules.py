"""Alert conditions of one GPU. Each function returns its matches, which may be none, or None if the facts are
not sufficient to decide."""
# ruff: noqa: ARG001 - all conditions share one signature

from __future__ import annotations

from clusters.alerts.facts import HOLDER, GpuFacts, NodeFacts, RecentEvent, RuleMatch, RuleResult
from clusters.alerts.limits import AlertLimits
from trainhub_launch.gpus.xid import xid
from trainhub_launch.machine import GPU_LOST
from trainhub_launch.severity import CRITICAL, WARNING

BUSY_PCT = 95.0
# Share of the time with lowered clocks from which the loss of speed is noticeable.
THROTTLED_PCT = 10.0
QUIET_MINUTES = 60.0
RESTART = "Drain the node and restart the machine."
DRAIN_AND_RESET = "Drain the node and reset the GPU when it is free."
GIB = 2**30
# A desktop session or the context of a monitoring tool uses less memory.
MIN_STRAY_BYTES = GIB


def gpu_name(gpu: GpuFacts, node: NodeFacts) -> str:
    return f"GPU {gpu.index} of {node.name}"


def idle(gpu: GpuFacts, node: NodeFacts, limits: AlertLimits) -> RuleResult:
    """Matches a leased GPU that no process uses."""
    if gpu.lease is None:
        return ()
    # The maximum of the bucket: a GPU that was used for one of its seconds is not idle. Without it, the
    # processes decide.
    highest = gpu.peak.get("utilization_pct", _busiest(gpu))
    # Without a measured utilisation the GPU may be at work: unknown, which neither opens nor clears an alert.
    if highest is None:
        return None
    if highest >= limits.idle_pct:
        return ()
    how = (
        f"its processes use less than {limits.idle_pct:g} % of it" if gpu.processes else "no process is on it"
    )
    sentence = (
        f"{gpu_name(gpu, node)} is held by {HOLDER} but idle: {how}. "
        "Check in the log what the run waits for, or end the run to free the GPU."
    )
    return (RuleMatch(sentence, {"highest_pct": highest, "processes": len(gpu.processes)}),)


def hang(gpu: GpuFacts, node: NodeFacts, limits: AlertLimits) -> RuleResult:
    """Matches a GPU on which a kernel runs all the time but draws little power, which is typical of ranks
    that wait for each other."""
    busy, power, limit = (
        gpu.mean.get("utilization_pct"),
        gpu.mean.get("power_w"),
        gpu.mean.get("power_limit_w"),
    )
    if busy is None or power is None or not limit:
        return None
    if busy < BUSY_PCT or power >= limit * limits.hang_power_pct / 100:
        return ()
    sentence = (
        f"{gpu_name(gpu, node)} reports {busy:.0f} % utilisation and draws only {power:.0f} W "
        f"of {limit:.0f} W. A kernel probably waits forever, for example in a collective that one rank "
        f"never reached. It is held by {HOLDER}. Find the rank whose log has stopped, take its stack "
        "with py-spy, and end the run if it makes no progress."
    )
    return (RuleMatch(sentence, {"utilization_pct": busy, "power_w": power, "power_limit_w": limit}),)


def throttled(gpu: GpuFacts, node: NodeFacts, limits: AlertLimits) -> RuleResult:
    # The power limit is left out, because many GPUs run at it by design.
    heat, hardware = gpu.mean.get("throttled_thermal_pct"), gpu.mean.get("throttled_hardware_pct")
    if heat is None and hardware is None:
        return None
    if max(heat or 0.0, hardware or 0.0) < THROTTLED_PCT:
        return ()
    degrees = gpu.mean.get("temperature_c")
    at = "" if degrees is None else f" at {degrees:.0f} °C"
    if (heat or 0.0) >= THROTTLED_PCT:
        sentence = (
            f"{gpu_name(gpu, node)} is slowed by heat{at}. Check fans, air flow and the room's cooling."
        )
    else:
        sentence = (
            f"{gpu_name(gpu, node)} is slowed by its hardware{at}. Check power supply, power cables and "
            "cooling."
        )
    return (RuleMatch(sentence, {"thermal_pct": heat, "hardware_pct": hardware, "temperature_c": degrees}),)


def hot(gpu: GpuFacts, node: NodeFacts, limits: AlertLimits) -> RuleResult:
    core, memory = gpu.mean.get("temperature_c"), gpu.mean.get("memory_temperature_c")
    if core is None and memory is None:
        return None
    name = gpu_name(gpu, node)
    parts = []
    if core is not None and limits.gpu_c and core >= limits.gpu_c:
        parts.append(f"{name} is {core:.0f} °C hot")
    if memory is not None and limits.gpu_memory_c and memory >= limits.gpu_memory_c:
        parts.append(f"{'its memory' if parts else f'The memory of {name}'} is {memory:.0f} °C hot")
    if not parts:
        return ()
    sentence = (
        f"{' and '.join(parts)}. Check fans, air flow and the room's cooling before the GPU is slowed down."
    )
    return (RuleMatch(sentence, {"temperature_c": core, "memory_temperature_c": memory}),)


def gpu_memory(gpu: GpuFacts, node: NodeFacts, limits: AlertLimits) -> RuleResult:
    used = gpu.mean.get("memory_used_bytes")
    if used is None or not gpu.memory_bytes:
        return None
    # The first number does not include the driver's own memory, which no run can use either.
    used_total = used + gpu.mean.get("memory_reserved_bytes", 0.0)
    share = 100 * used_total / gpu.memory_bytes
    if share < limits.gpu_memory_pct:
        return ()
    sentence = (
        f"The memory of {gpu_name(gpu, node)} is nearly full: {used_total / GIB:.1f} of "
        f"{gpu.memory_bytes / GIB:.1f} GiB, "
        f"held by {HOLDER}. The run may fail with out-of-memory errors: use a smaller batch, gradient "
        "checkpointing or sharding."
    )
    return (RuleMatch(sentence, {"percent": share}),)


def ecc(gpu: GpuFacts, node: NodeFacts, limits: AlertLimits) -> RuleResult:
    """Matches from the first uncorrected error until a quiet time has passed or the GPU was reset."""
    events = [item for item in _since_reset(gpu, limits) if item.kind == "ecc"]
    growth = (
        gpu.ecc_growth
        if gpu.ecc_growth is not None and gpu.ecc_growth.age_s <= _event_window_s(gpu, limits)
        else None
    )
    if not events and growth is None:
        return ()
    count = "" if growth is None else f" ({growth.by} more)"
    sentence = (
        f"{gpu_name(gpu, node)} had memory errors that could not be corrected{count}; it is held by "
        f"{HOLDER}. Its results may be wrong. Drain the node and reset the GPU; replace the GPU if the "
        "errors return."
    )
    return (
        RuleMatch(
            sentence,
            {"grown_by": growth.by if growth else None},
            cause="memory errors that were not corrected",
        ),
    )


def xid_errors(gpu: GpuFacts, node: NodeFacts, limits: AlertLimits) -> RuleResult:
    counts: dict[int, int] = {}
    for item in _since_reset(gpu, limits):
        if item.kind == "xid":
            counts[item.code] = counts.get(item.code, 0) + 1
    return tuple(_xid(gpu, node, code, times) for code, times in counts.items())


def remapped_rows(gpu: GpuFacts, node: NodeFacts, limits: AlertLimits) -> RuleResult:
    pending, failed = gpu.counters.get("remapped_rows_pending"), gpu.counters.get("remapped_rows_failed")
    if pending is None and failed is None:
        return None
    if failed:
        sentence = (
            f"{gpu_name(gpu, node)} has no spare memory rows left: remapping failed. Drain the "
            "node and replace the GPU."
        )
        return (
            RuleMatch(
                sentence, {"failed": failed}, CRITICAL, subkey="failed", cause="no spare memory rows are left"
            ),
        )
    if not pending:
        return ()
    sentence = f"{gpu_name(gpu, node)} will remap bad memory rows at its next reset. {DRAIN_AND_RESET}"
    return (RuleMatch(sentence, {"pending": pending}),)


def retired_pages(gpu: GpuFacts, node: NodeFacts, limits: AlertLimits) -> RuleResult:
    pending = gpu.counters.get("retired_pages_pending")
    if pending is None:
        return None
    sentence = f"{gpu_name(gpu, node)} will retire bad memory pages at its next reset. {DRAIN_AND_RESET}"
    return (RuleMatch(sentence, {"pending": pending}),) if pending else ()


def pcie_width(gpu: GpuFacts, node: NodeFacts, limits: AlertLimits) -> RuleResult:
    """Matches a link with fewer lanes than possible. The PCIe generation is not compared, because it drops by
    design while a GPU is idle."""
    lanes, max_lanes = gpu.counters.get("pcie_width"), gpu.counters.get("pcie_width_max")
    if lanes is None or max_lanes is None:
        return None
    sentence = (
        f"{gpu_name(gpu, node)} uses {lanes} PCIe lanes instead of {max_lanes}, which slows transfers down. "
        "Reseat the card or its riser when the machine is free."
    )
    return (RuleMatch(sentence, {"lanes": lanes, "most": max_lanes}),) if 0 < lanes < max_lanes else ()


def lost(gpu: GpuFacts, node: NodeFacts, limits: AlertLimits) -> RuleResult:
    if gpu.state != GPU_LOST:
        return ()
    if node.nvml:
        # Without the library all GPUs count as lost. That is an alert of its own (node_nvml), and the state
        # of this one GPU is unknown.
        return None
    sentence = (
        f"{gpu_name(gpu, node)} is lost; it is held by {HOLDER}. The run on it cannot continue, and the GPU "
        f"gets no new runs. {(gpu.error or RESTART).rstrip('.')}."
    )
    return (RuleMatch(sentence, {"error": gpu.error}, cause="it did not respond"),)


def stray(gpu: GpuFacts, node: NodeFacts, limits: AlertLimits) -> RuleResult:
    """Matches a GPU that is offered as free although a process outside TrainHub uses it."""
    if gpu.lease is not None or node.is_monitor_only:
        return ()
    stray_processes = [
        (item["memory_bytes"] or 0, item)
        for item in gpu.processes
        if not item.get("run") and (item.get("memory_bytes") or 0) >= MIN_STRAY_BYTES
    ]
    if not stray_processes:
        return ()
    used_bytes, largest = max(stray_processes, key=lambda item: item[0])
    owner = f" of {largest['user']}" if largest.get("user") else ""
    sentence = (
        f"{gpu_name(gpu, node)} is free for TrainHub, but process {largest['pid']} "
        f"({largest['name']}{owner}) uses {used_bytes / GIB:.1f} GiB of it. "
        "A run that gets this GPU may run out of memory: end the process, or drain the node."
    )
    return (RuleMatch(sentence, {"pid": largest["pid"], "memory_bytes": used_bytes}),)


def _xid(gpu: GpuFacts, node: NodeFacts, code: int, times: int) -> RuleMatch:
    entry = xid(code)
    again = f", {times} times" if times > 1 else ""
    sentence = (
        f"{gpu_name(gpu, node)} reported XID {code}{again}: {entry.meaning}. It is held by {HOLDER}. "
        f"{entry.remedy}"
    )
    return RuleMatch(
        sentence,
        {"code": code, "times": times},
        entry.severity or WARNING,
        subkey=str(code),
        cause=f"XID {code}",
    )


def _busiest(gpu: GpuFacts) -> float | None:
    """Returns the utilization in percent of the busiest process, or None unless all processes report one.

    It stands in for MIG devices, which report no utilization of their own."""
    shares = [item.get("sm_pct") for item in gpu.processes]
    values = [share for share in shares if share is not None]
    return max(values) if values and len(values) == len(shares) else None


def _event_window_s(gpu: GpuFacts, limits: AlertLimits) -> float:
    """Returns the maximum age of events that count: the quiet time, or less after a reset or a restart."""
    reset_ages = [item.age_s for item in gpu.events if item.kind in ("back", "restarted")]
    return min([(limits.xid_quiet_minutes or QUIET_MINUTES) * 60, *reset_ages])


def _since_reset(gpu: GpuFacts, limits: AlertLimits) -> list[RecentEvent]:
    return [item for item in gpu.events if item.age_s <= _event_window_s(gpu, limits)]

"""How pages describe one device of the GPU overview."""

from __future__ import annotations

from clusters.gpus.gpu_cells import GpuCell
from clusters.states import GpuUsage

STEPS = 10


def heat(cell: GpuCell) -> int:
    """Returns the load as 0 to 10, which selects a colour between background and accent."""
    return 0 if cell.utilization_pct is None else round(min(cell.utilization_pct, 100) * STEPS / 100)


def gpu_summary(cell: GpuCell) -> str:
    """Returns a description of a device in one line, for the title of its cell."""
    parts = [f"GPU {cell.gpu.index} {cell.gpu.name}", *_usage_texts(cell)]
    if cell.utilization_pct is not None:
        parts.append(f"{cell.utilization_pct:.0f} % load")
    if cell.memory_pct is not None:
        parts.append(f"{cell.memory_pct:.0f} % of its memory used")
    return ", ".join(parts)


def _usage_texts(cell: GpuCell) -> list[str]:
    holder = [cell.lease.label] if cell.lease else []
    return {
        GpuUsage.FREE: ["free"],
        GpuUsage.BUSY: holder,
        GpuUsage.IDLE: [*holder, "held but idle"],
        GpuUsage.FOREIGN: ["held by no run, but used by another process"],
        GpuUsage.UNHEALTHY: [*(holder or ["held by no run"]), f"unhealthy: {cell.fault}"],
        GpuUsage.LOST: [*holder, "no longer responds"],
    }[cell.usage]

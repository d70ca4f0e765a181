from __future__ import annotations

from django import template

from clusters.overview import GpuCell
from clusters.states import GpuStanding

register = template.Library()
STEPS = 10


@register.filter
def heat(cell: GpuCell) -> int:
    """0 to 10: how far the cell's colour goes from the ground to the accent."""
    return 0 if cell.utilization_pct is None else round(min(cell.utilization_pct, 100) * STEPS / 100)


@register.filter
def shown(value: float | None, unit: str = "") -> str:
    """A number with its unit; what is not known is a dash, never 0."""
    if value is None:
        return "–"
    return f"{value:.0f} {unit}".rstrip()


@register.filter
def told(cell: GpuCell) -> str:
    """A device in one line, for a heat cell's title."""
    parts = [f"GPU {cell.gpu.index} {cell.gpu.name}", *_standing(cell)]
    if cell.utilization_pct is not None:
        parts.append(f"{cell.utilization_pct:.0f} % load")
    if cell.memory_pct is not None:
        parts.append(f"{cell.memory_pct:.0f} % of its memory used")
    return ", ".join(parts)


def _standing(cell: GpuCell) -> list[str]:
    holder = [cell.lease.label] if cell.lease else []
    return {
        GpuStanding.FREE: ["free"],
        GpuStanding.BUSY: holder,
        GpuStanding.IDLE: [*holder, "held but idle"],
        GpuStanding.FOREIGN: ["held by no run, but used by another process"],
        GpuStanding.LOST: [*holder, "does not answer any more"],
    }[cell.standing]

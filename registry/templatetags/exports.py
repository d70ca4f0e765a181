"""Template filters for exports on the pages of versions."""

from __future__ import annotations

from typing import Any

from django import template

from registry.exports.options import candidates
from registry.models import Export, ModelVersion

register = template.Library()
MAX_ROWS = 20


@register.filter
def exports_of(version: ModelVersion) -> list[Export]:
    """Returns the latest exports of a version, the newest first."""
    return list(version.exports.select_related("run", "result", "created_by")[:MAX_ROWS])


@register.filter
def source_export(version: ModelVersion) -> Export | None:
    """Returns the export that made this version, or None."""
    if version.kind != "export":
        return None
    return Export.objects.filter(result=version).select_related("run", "version__model").first()


@register.filter
def is_exportable(version: ModelVersion) -> bool:
    return version.kind != "export" and bool(candidates(version))


@register.filter
def scientific(value: Any) -> str:
    """Formats a number: 3e-08 as 3.0e-8, 0 as 0. Other values are returned as text."""
    if not isinstance(value, int | float):
        return str(value)
    if value == 0:
        return "0"
    digits, _, power = f"{value:.1e}".partition("e")
    return f"{digits}e{int(power)}"


@register.filter
def dimensions(shape: list[int | str]) -> str:
    return " × ".join(map(str, shape)) or "scalar"

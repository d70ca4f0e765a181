"""Template filters for the scanner's verdicts."""

from __future__ import annotations

from django import template

from registry.models import ModelVersion
from registry.scanning import verdicts
from registry.scanning.verdict_names import CONTAINS_CODE, DANGEROUS, NOT_SCANNED

register = template.Library()


@register.filter
def verdict_badge(version: ModelVersion) -> str:
    return verdicts.verdict(version)


@register.filter
def risky(version: ModelVersion) -> bool:
    """Whether a download needs a warning first."""
    return verdicts.verdict(version) in (DANGEROUS, NOT_SCANNED, CONTAINS_CODE)

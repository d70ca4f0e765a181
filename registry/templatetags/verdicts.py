"""What the scanner says, in templates."""

from __future__ import annotations

from django import template

from registry.models import ModelVersion
from registry.scanning import verdicts
from registry.scanning.verdict_names import CONTAINS_CODE, DANGEROUS, NOT_SCANNED

register = template.Library()


@register.filter
def verdict(version: ModelVersion) -> str:
    return verdicts.verdict(version)


@register.filter
def risky(version: ModelVersion) -> bool:
    """Whether there is something to read before a download."""
    return verdicts.verdict(version) in (DANGEROUS, NOT_SCANNED, CONTAINS_CODE)

"""The verdict of the scanner on a version, or on one of its files."""

from __future__ import annotations

from typing import Any

from registry.models import ModelVersion
from registry.scanning.verdict_names import DANGEROUS, PENDING, RULES, worst
from trainhub_launch.json_types import JsonObject

EMPTY: JsonObject = {"verdict": PENDING, "findings": [], "note": ""}
OUTDATED = "It was scanned by rules of an earlier version of TrainHub and is being scanned again."


def verdict(version: ModelVersion, path: str = "") -> str:
    """Return the verdict on one file, or the worst of all: clean, contains_code, not_scanned, dangerous, or
    pending.

    A version that was scanned by older rules is pending again, but what those rules found dangerous stays
    dangerous."""
    if not version.scan:
        return PENDING
    if path:
        return str(entry(version, path)["verdict"])
    worst_verdict = worst(item["verdict"] for item in version.scan.values())
    return worst_verdict if worst_verdict == DANGEROUS or version.scan_rules >= RULES else PENDING


def entry(version: ModelVersion, path: str) -> dict[str, Any]:
    """Return verdict, findings and note of one file."""
    item = (version.scan or {}).get(path)
    if item is None:
        return EMPTY
    if version.scan_rules < RULES and item["verdict"] != DANGEROUS:
        return {**EMPTY, "note": OUTDATED}
    return dict(item)

"""What the scanner says of a version, or of one of its files."""

from __future__ import annotations

from registry.models import ModelVersion
from registry.scanning.words import worst

PENDING = "pending"


def verdict(version: ModelVersion, path: str = "") -> str:
    """Of one file, or of all: clean, suspicious, unscanned, dangerous; pending while nobody has looked."""
    if version.scan is None:
        return PENDING
    if path:
        return str(version.scan.get(path, {}).get("verdict", PENDING))
    return worst(item["verdict"] for item in version.scan.values())

"""Scans the schema of skops, which lists the classes of a scikit-learn model in JSON."""

from __future__ import annotations

import json

from registry.scanning.formats.imports import judge_imports
from registry.scanning.formats.keras import MAX_CONFIG_BYTES, walk
from registry.scanning.formats.source import Source
from registry.scanning.verdict_names import CLEAN, CONTAINS_CODE, DANGEROUS, Verdict

_OWN = ("sklearn", "numpy", "scipy")


def scan_schema(source: Source) -> Verdict:
    """Judges the names outside of scikit-learn, NumPy and SciPy; skops itself loads such names only after
    confirmation."""
    data = json.loads(source.whole(MAX_CONFIG_BYTES))
    names = {
        (item["__module__"], item["__class__"])
        for item in walk(data)
        if isinstance(item.get("__module__"), str) and isinstance(item.get("__class__"), str)
    }
    verdict = judge_imports(
        item
        for item in names
        if item[0].partition(".")[0] not in _OWN or judge_imports([item]).verdict == DANGEROUS
    )
    if verdict.verdict == CONTAINS_CODE and all(text.startswith("builtins.") for text in verdict.findings):
        return Verdict(CLEAN)
    return verdict

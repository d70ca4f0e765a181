"""The schema of skops, which says in JSON what classes a scikit-learn model is made of."""

from __future__ import annotations

import json

from registry.scanning.formats.imports import judge
from registry.scanning.formats.keras import MAX_CONFIG_BYTES, walk
from registry.scanning.formats.source import Source
from registry.scanning.verdict_names import CLEAN, CONTAINS_CODE, DANGEROUS, Verdict

_OWN = ("sklearn", "numpy", "scipy")


def scan_schema(source: Source) -> Verdict:
    """Judge all names outside scikit-learn, NumPy and SciPy; skops itself asks before it loads such names."""
    data = json.loads(source.whole(MAX_CONFIG_BYTES))
    names = {
        (item["__module__"], item["__class__"])
        for item in walk(data)
        if isinstance(item.get("__module__"), str) and isinstance(item.get("__class__"), str)
    }
    found = judge(
        item for item in names if item[0].partition(".")[0] not in _OWN or judge([item]).verdict == DANGEROUS
    )
    if found.verdict == CONTAINS_CODE and all(text.startswith("builtins.") for text in found.findings):
        return Verdict(CLEAN)
    return found

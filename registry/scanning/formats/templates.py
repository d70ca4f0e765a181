"""Scans chat templates, small programs in Jinja that libraries run in a sandbox."""

from __future__ import annotations

import re

from registry.scanning.verdict_names import CLEAN, DANGEROUS, Verdict

# Escaped underscores (\x5f) hide names with two of them from filters, and format_map reads attributes.
_ESCAPES = re.compile(
    r"__\w+__|\battr\s*\(|\bmro\b|\bgi_frame\b|\bf_globals\b|\bimport\s+os\b|\\x5f|\\u005f|\bformat_map\b"
)
ESCAPES = "A chat template in it reaches for Python's internals, as attempts to break out of its sandbox do."


def scan_template(text: str) -> Verdict:
    """Judges a template: dangerous if it contains names that only attacks on the sandbox need, otherwise
    clean."""
    escapes = _ESCAPES.findall(text)
    return Verdict(DANGEROUS, tuple(dict.fromkeys(escapes)), ESCAPES) if escapes else Verdict(CLEAN)

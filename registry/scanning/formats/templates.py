"""Chat templates: small programs in Jinja, which libraries run in a sandbox."""

from __future__ import annotations

import re

from registry.scanning.verdict_names import CLEAN, DANGEROUS, Verdict

_ESCAPES = re.compile(
    r"__\w+__|\battr\s*\(|\bmro\b|\bgi_frame\b|\bf_globals\b|\bimport\s+os\b|\\x5f|\\u005f|\bformat_map\b"
)
ESCAPES = "A chat template in it reaches for Python's internals, as attempts to break out of its sandbox do."


def scan_template(text: str) -> Verdict:
    """Dangerous where it names what only an attack needs; templates as models bring them are harmless in the
    sandbox."""
    found = _ESCAPES.findall(text)
    return Verdict(DANGEROUS, tuple(dict.fromkeys(found)), ESCAPES) if found else Verdict(CLEAN)

"""The verdicts of the model scan. It imports the standard library only, because the scanning process starts
with this module."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

CLEAN, CONTAINS_CODE, NOT_SCANNED, DANGEROUS = "clean", "contains_code", "not_scanned", "dangerous"
ORDER = (CLEAN, CONTAINS_CODE, NOT_SCANNED, DANGEROUS)
# The scanner has not come to it yet.
PENDING = "pending"
# The version of the scanner's rules. Raise it when a file may now get a worse verdict: versions that were
# scanned by older rules are then scanned again.
RULES = 2
MAX_FINDINGS = 50
MAX_FINDING_LENGTH = 200


class Verdict(NamedTuple):
    """The verdict on one file. `findings` are names, the worst first; `note` is a sentence where there is
    more to say."""

    verdict: str
    findings: tuple[str, ...] = ()
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        findings = [_storable(text[:MAX_FINDING_LENGTH]) for text in self.findings[:MAX_FINDINGS]]
        return {"verdict": self.verdict, "findings": findings, "note": _storable(self.note)}


def worst(verdicts: Iterable[str]) -> str:
    return max(verdicts, key=ORDER.index, default=CLEAN)


def combine(parts: Iterable[tuple[str, Verdict]]) -> Verdict:
    """Combine the verdicts on the named parts of one file: the worst counts, and its note says which part it
    is about.

    Parts of no name are the file itself. Findings of the worst part come first.
    """
    ranked = sorted(parts, key=lambda part: -ORDER.index(part[1].verdict))
    if not ranked:
        return Verdict(CLEAN)
    name, first = ranked[0]
    findings = tuple(dict.fromkeys(text for _, part in ranked for text in part.findings))
    note = f"{name[-100:]}: {first.note}" if name and first.note else first.note
    return Verdict(first.verdict, findings[:MAX_FINDINGS], note)


def _storable(text: str) -> str:
    """Make `text` acceptable to any database: names in a model's files may hold any bytes."""
    return text.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")

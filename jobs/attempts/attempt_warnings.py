"""Sentences about an attempt that its run's page shows first: what was left out, what could not be read, and
why."""

from __future__ import annotations

from collections.abc import Sequence

from jobs import lifecycle
from jobs.models import Attempt

MAX_WARNINGS = 100


def add(attempt: Attempt, sentences: Sequence[str], *, actor: str) -> None:
    """Those that are new, in the journal too. The caller holds the run's row: others add to the same
    attempt."""
    new = [sentence for sentence in dict.fromkeys(sentences) if sentence not in attempt.warnings]
    if not new or len(attempt.warnings) >= MAX_WARNINGS:
        return
    attempt.warnings = [*attempt.warnings, *new][:MAX_WARNINGS]
    Attempt.objects.filter(pk=attempt.pk).update(warnings=attempt.warnings)
    for sentence in new:
        lifecycle.note(attempt.run_id, sentence, actor=actor, attempt=attempt.number)

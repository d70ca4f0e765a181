"""Warnings of an attempt, shown at the top of the run's page: what was left out or unreadable, and why."""

from __future__ import annotations

from collections.abc import Sequence

from jobs import lifecycle
from jobs.models import Attempt

MAX_WARNINGS = 100


def add(attempt: Attempt, sentences: Sequence[str], *, actor: str) -> None:
    """Adds new sentences to the attempt's warnings and to the run's journal.

    The caller must have locked the run's row: several nodes may add to the same attempt at once."""
    new = [sentence for sentence in dict.fromkeys(sentences) if sentence not in attempt.warnings]
    if not new or len(attempt.warnings) >= MAX_WARNINGS:
        # A script that warns in a loop must not fill the run's journal.
        return
    attempt.warnings = [*attempt.warnings, *new][:MAX_WARNINGS]
    Attempt.objects.filter(pk=attempt.pk).update(warnings=attempt.warnings)
    for sentence in new:
        lifecycle.record_event(attempt.run_id, sentence, actor=actor, attempt=attempt.number)

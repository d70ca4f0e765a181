"""Stores why runs wait that a walk through their queue has passed over: many at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from jobs import lifecycle
from jobs.queues.waiting_runs import WaitingRun
from jobs.states import Reason

# So many sentences one walk stores; the next one stores others.
MAX_STORED = 500


def store_sentences(notes: Sequence[tuple[WaitingRun, str]]) -> None:
    """Stores the sentences that differ from what the runs say now. `notes`: those at the front come first."""
    changed = islice(((run, sentence) for run, sentence in notes if run.sentence != sentence), MAX_STORED)
    sentences = {run.pk: (run, sentence) for run, sentence in changed}
    if not sentences:
        return
    lifecycle.set_waiting_reasons(
        Reason.NOT_FITTING_YET, {pk: {"detail": sentence} for pk, (_, sentence) in sentences.items()}
    )
    for run, sentence in sentences.values():
        run.sentence = sentence

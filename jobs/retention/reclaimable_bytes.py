"""The number of bytes that a purge would free: logs, and stored files that nothing else references."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from django.db.models import Count

from jobs.logs import log_store
from jobs.models import Run
from jobs.retention.purge_registry import RUN_TABLES
from workspaces.stored_files import blob_names

BATCH_SIZE = 500


def bytes_by_group(groups: Mapping[int, Collection[str]]) -> dict[int, int]:
    """Returns group -> bytes for groups of run ids that are purged together."""
    group_of = {run: group for group, runs in groups.items() for run in runs}
    sizes: dict[tuple[int, str], int] = {}
    own: Counter[tuple[int, str]] = Counter()
    for table in RUN_TABLES:
        if table.names_files:
            for run, sha256, size in table.for_runs(*group_of).values_list(table.run, "sha256", "size_bytes"):
                sizes[group_of[run], sha256] = size
                own[group_of[run], sha256] += 1
    everywhere = _reference_counts(sorted({sha256 for _, sha256 in sizes}))
    freed = {group: sum(log_store.stored_bytes(run) for run in runs) for group, runs in groups.items()}
    for (group, sha256), size in sizes.items():
        # A file is only freed if all rows that reference it belong to the group.
        if own[group, sha256] == everywhere[sha256]:
            freed[group] += size
    return freed


def with_children(runs: Collection[Run]) -> dict[int, set[str]]:
    """Returns run number -> ids of the deleted run and its nested deleted runs."""
    ids = {run.number: {run.pk} for run in runs}
    above = {run.pk: run.number for run in runs}
    # One query per level of nesting, for all runs together.
    while above:
        below = Run.objects.deleted().filter(parent__in=above).values_list("pk", "parent_id")
        above = {pk: above[parent] for pk, parent in below}
        for pk, number in above.items():
            ids[number].add(pk)
    return ids


def _reference_counts(hashes: list[str]) -> Counter[str]:
    """Returns hash -> number of rows that reference it."""
    counts: Counter[str] = Counter()
    for start in range(0, len(hashes), BATCH_SIZE):
        for table in blob_names.TABLES:
            rows = table._default_manager.filter(sha256__in=hashes[start : start + BATCH_SIZE])
            counts.update(dict(rows.values_list("sha256").annotate(Count("pk"))))
    return counts

"""How many bytes a purge would free: logs, and the files that nothing else names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from django.db.models import Count

from jobs.logs import log_store
from jobs.models import Run
from jobs.retention.purge_registry import BELONGINGS
from workspaces.stored_files import blob_gc

AT_ONCE = 500


def bytes_of(groups: Mapping[int, Collection[str]]) -> dict[int, int]:
    """Group -> bytes, of groups of runs (ids) that go together."""
    group_of = {run: group for group, runs in groups.items() for run in runs}
    sizes: dict[tuple[int, str], int] = {}
    own: Counter[tuple[int, str]] = Counter()
    for belonging in BELONGINGS:
        if belonging.names_files:
            for run, sha256, size in belonging.for_runs(*group_of).values_list(
                belonging.run, "sha256", "size_bytes"
            ):
                sizes[group_of[run], sha256] = size
                own[group_of[run], sha256] += 1
    everywhere = _named_everywhere(sorted({sha256 for _, sha256 in sizes}))
    freed = {group: sum(log_store.stored_bytes(run) for run in runs) for group, runs in groups.items()}
    for (group, sha256), size in sizes.items():
        if own[group, sha256] == everywhere[sha256]:
            freed[group] += size
    return freed


def with_parts(runs: Collection[Run]) -> dict[int, set[str]]:
    """Number -> the ids of a deleted run and of what was deleted with it."""
    found = {run.number: {run.pk} for run in runs}
    above = {run.pk: run.number for run in runs}
    while above:
        below = Run.objects.deleted().filter(parent__in=above).values_list("pk", "parent_id")
        above = {pk: above[parent] for pk, parent in below}
        for pk, number in above.items():
            found[number].add(pk)
    return found


def _named_everywhere(hashes: list[str]) -> Counter[str]:
    """How many rows name each of them."""
    found: Counter[str] = Counter()
    for start in range(0, len(hashes), AT_ONCE):
        for table in blob_gc.TABLES:
            rows = table._default_manager.filter(sha256__in=hashes[start : start + AT_ONCE])
            found.update(dict(rows.values_list("sha256").annotate(Count("pk"))))
    return found

"""What a run has of each kind of data: whether there is some, how much, and how it is removed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet, Sum

from jobs.checkpoints.states import USABLE, CheckpointState
from jobs.logs import log_removal
from jobs.models import Checkpoint, DataRemoval, Member, Run
from jobs.retention import run_purge
from jobs.retention_rules.data_tables import TABLES
from jobs.states import DataKind, RunKind

# What else is removed of a run, by its id.
FILES: dict[DataKind, list[Callable[[str], object]]] = defaultdict(list)
FILES[DataKind.LOGS].append(log_removal.remove_logs)
FILES[DataKind.METRICS].append(log_removal.remove_event_files)


def has_data(kind: DataKind) -> Q:
    """Returns the condition that there may be data of this kind of a run."""
    if kind is DataKind.LOGS:
        # They lie in files; a removal says that they are gone.
        removed = DataRemoval.objects.filter(run=OuterRef("pk"), kind=kind)
        return Q(kind=RunKind.JOB, attempt__gt=0) & ~Q(Exists(removed))
    return reduce(or_, [table.is_in_run() for table in TABLES if table.kind is kind])


def total_bytes(kind: DataKind, runs: QuerySet[Run, Any]) -> int:
    """Returns how many bytes of this kind these runs have, by what the database knows of it."""
    if kind is DataKind.LOGS:
        members = Member.objects.filter(attempt__run__in=runs).order_by()
        return int(members.aggregate(total=Sum("log_bytes", default=0))["total"])
    return sum(
        int(table.rows(runs).aggregate(total=table.total)["total"])
        for table in TABLES
        if table.kind is kind and table.size
    )


def bytes_by_run(kind: DataKind, runs: Collection[str]) -> dict[str, int]:
    """Returns the same for each of these runs."""
    sizes = dict.fromkeys(runs, 0)
    if kind is DataKind.LOGS:
        rows: Any = Member.objects.filter(attempt__run__in=runs).order_by()
        counted = [rows.values_list("attempt__run").annotate(total=Sum("log_bytes", default=0))]
    else:
        counted = [
            table.rows(runs).values_list(table.run).annotate(total=table.total)
            for table in TABLES
            if table.kind is kind and table.size
        ]
    for totals in counted:
        for run, total in totals:
            sizes[run] += int(total)
    return sizes


def close(kind: DataKind, runs: Collection[str]) -> None:
    """Says, before anything is removed, that it cannot be used any more: within the transaction that begins
    the removal."""
    if kind is DataKind.OUTPUTS:
        usable = Checkpoint.objects.filter(run__in=runs, state__in=USABLE)
        # What lies in a datastore stays there, and is usable.
        usable.filter(store_path="").update(state=CheckpointState.REMOVED)


def remove(kind: DataKind, runs: Collection[str]) -> None:
    """Removes the data of these runs. May be repeated, also after it was broken off."""
    for remove_files in FILES[kind]:
        for run in runs:
            remove_files(run)
    for table in TABLES:
        if table.kind is kind:
            run_purge.delete_rows(table.rows(runs))

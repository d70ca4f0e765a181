"""Measures the bytes that the hub stores for a workspace and for each person in it.

They are measured from time to time, not in each request; what is accepted in between is added. Files are
counted by their hashes: one that several runs name counts once for the workspace, and once for each of their
people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import timedelta

from django.db import transaction
from django.db.models import F, Q, Sum
from django.utils import timezone

from clusters.models import DiskUse, Quota
from jobs.logs import log_store
from jobs.models import ArchivedLog, DataRemoval, Member, Run
from jobs.states import FINAL, DataKind, RunKind
from workspaces.models import Workspace
from workspaces.stored_files import blob_names

MEASURE_INTERVAL_S = 300.0
# Before a refusal it is measured again, so that somebody who has just deleted files is not refused. A client
# that repeats refused requests does not cause more than one measurement in this time.
MIN_INTERVAL = timedelta(seconds=10)

# Workspace and person (None: the whole workspace) -> bytes.
StoredBytes = Mapping[tuple[int, int | None], int]


def disk_bytes(workspace: Workspace | None = None) -> StoredBytes:
    """Returns what was measured, with what was accepted since; of one workspace, or of all."""
    rows = DiskUse.objects.all() if workspace is None else DiskUse.objects.filter(workspace=workspace)
    return {
        (owner, person): size for owner, person, size in rows.values_list("workspace", "person", "size_bytes")
    }


def count_accepted(workspace: Workspace, person: int | None, size_bytes: int) -> None:
    """Adds bytes that were accepted for this person; the next measurement replaces the sum."""
    rows = DiskUse.objects.filter(Q(person=None) | Q(person=person), workspace=workspace)
    rows.update(size_bytes=F("size_bytes") + size_bytes)


def measure_disk(workspace: Workspace) -> None:
    """Measures the workspace and the people in it."""
    now = timezone.now()
    by_person = _log_bytes(workspace)
    total, file_bytes = blob_names.bytes_in(workspace.pk)
    for person, size in file_bytes.items():
        by_person[person] += size
    total += by_person[_LOGS]
    people = set(workspace.memberships.values_list("user", flat=True))
    sizes = {person: by_person[person] for person in people | set(by_person) - {None, _LOGS}}
    with transaction.atomic():
        # Of two measurements at once, the second waits here and replaces the first.
        Workspace.objects.select_for_update(no_key=True).get(pk=workspace.pk)
        DiskUse.objects.filter(workspace=workspace).delete()
        DiskUse.objects.bulk_create(
            DiskUse(workspace=workspace, person_id=person, size_bytes=size, measured_at=now)
            for person, size in [(None, total), *sizes.items()]
        )


def measure_again(workspace: Workspace) -> bool:
    """Measures the workspace unless that was done a moment ago; returns whether it was."""
    since = timezone.now() - MIN_INTERVAL
    if DiskUse.objects.filter(workspace=workspace, person=None, measured_at__gt=since).exists():
        return False
    measure_disk(workspace)
    return True


def measure_limited() -> None:
    """Measures each workspace that has a quota of disk, and forgets the others."""
    limited = Workspace.objects.filter(pk__in=Quota.objects.exclude(disk_gib=None).values("workspace"))
    DiskUse.objects.exclude(workspace__in=limited).delete()
    for workspace in limited:
        measure_disk(workspace)


# The key of the logs of the whole workspace, beside those of each person. No person has it.
_LOGS = -1


def _log_bytes(workspace: Workspace) -> defaultdict[int | None, int]:
    """Returns the bytes of logs by person, and those of all under _LOGS."""
    sizes: defaultdict[int | None, int] = defaultdict(int)
    jobs = Run.objects.with_deleted_for_workspace(workspace).filter(kind=RunKind.JOB).order_by()
    active = jobs.exclude(state__in=FINAL)
    # The nodes have reported the final sizes of logs that are complete; only the others are looked up.
    ended = Member.objects.filter(attempt__run__workspace=workspace, attempt__run__state__in=FINAL).order_by()
    removed = DataRemoval.objects.filter(run__workspace=workspace, kind=DataKind.LOGS)
    ended = ended.exclude(attempt__run__in=removed.values("run"))
    for person, size in ended.values_list("attempt__run__created_by").annotate(Sum("log_bytes", default=0)):
        sizes[person] += size
    for run, person in active.values_list("pk", "created_by"):
        sizes[person] += log_store.stored_bytes(run)
    # Of earlier attempts of runs that are tried again.
    archived = ArchivedLog.objects.filter(
        attempt__run__in=active, attempt__log_archive__done_at__isnull=False
    )
    by_person = archived.order_by().values_list("attempt__run__created_by").annotate(Sum("size_bytes"))
    for person, size in by_person:
        sizes[person] += size
    sizes[_LOGS] = sum(sizes.values())
    return sizes

"""Versions of datasets from the outputs of runs."""

from __future__ import annotations

from pathlib import PurePosixPath

from django.db import transaction
from django.db.models import Count, QuerySet, Sum

from datastores.changes import require_contributor
from datastores.models import DatasetVersion
from datastores.uploads import file_rules, stored_versions
from jobs import outputs
from jobs.models import Artifact, DatasetOrigin, Run
from jobs.quotas import disk_quota
from jobs.retention.removals import removal_sentence
from jobs.states import FINAL, DataKind
from trainhub_launch.data.manifests import ListedFile, content_etag
from trainhub_launch.errors import SpecError
from workspaces import audit
from workspaces.access import Principal

OUTPUTS = "outputs/"
MAX_OFFERED = 5


def make_version(
    principal: Principal, run: Run, name: str, *, path: str = "", attempt: int = 0, datastore: str = ""
) -> DatasetVersion:
    """Makes the next version of the dataset `name`, which is new if there is none, from `path`, a folder or
    file of the outputs of a run; "" for all of them. The contents are shared, so that they take no more room,
    and stay when the run is purged. `attempt`: 0 for the latest one. `datastore`: see
    stored_versions.add_stored_version. Raises SpecError, and PermissionDenied."""
    require_contributor(principal)
    if run.state not in FINAL:
        raise SpecError(
            "run", f"{run} is {run.state}: wait until it has ended and all of its outputs are here"
        )
    if attempt > run.attempt:
        raise SpecError("attempt", f"{run} has {run.attempt} attempts; leave it out for the latest one")
    chosen, rows = _choose_rows(run, attempt, path)
    files = _list_files(rows, run, chosen)
    disk_quota.check_room(principal.workspace, principal.user, field="name")
    stored_versions.hold_contents(files, str(run))
    with transaction.atomic():
        version = stored_versions.add_stored_version(principal, name, datastore, files, str(run))
        DatasetOrigin.objects.create(
            version=version, run=run, run_number=run.number, attempt=attempt or run.attempt, path=chosen
        )
        audit.record(
            principal.user,
            "dataset.derive",
            str(version),
            principal.workspace,
            run=run.pk,
            path=chosen or "all outputs",
        )
    return version


def list_versions(run: Run) -> QuerySet[DatasetOrigin]:
    """Returns the versions that were made from the outputs of the run, in their order."""
    return DatasetOrigin.objects.filter(run=run).select_related("version__dataset").order_by("pk")


def _choose_rows(run: Run, attempt: int, path: str) -> tuple[str, QuerySet[Artifact]]:
    """Returns the folder or file that was chosen, and the outputs that it is. Raises SpecError if there are
    none."""
    rows = outputs.for_attempt(run, attempt).order_by()
    text = path.strip().strip("/")
    # First as it was typed: a script may itself have made a folder called outputs/ within the run's outputs.
    for chosen in dict.fromkeys((text, f"{text}/".removeprefix(OUTPUTS).rstrip("/"))):
        _refuse_stored(run, attempt, chosen)
        for some in (rows.filter(path=chosen), outputs.rows_below(rows, chosen)):
            if some.exists():
                return chosen, some
    paths = rows.values_list("path", flat=True).iterator()
    offered = sorted({name + slash for name, slash, _ in (item.partition("/") for item in paths)})
    if not offered:
        removed = removal_sentence(run, DataKind.OUTPUTS).rstrip(".")
        raise SpecError(
            "run", removed or f"{run} has no outputs: a script writes them to outputs/, or logs them"
        )
    more = ["…"] if len(offered) > MAX_OFFERED else []
    listed = ", ".join([*offered[:MAX_OFFERED], *more])
    raise SpecError("path", f"{text!r:.300} is not among the outputs of {run}; there are: {listed}")


def _refuse_stored(run: Run, attempt: int, chosen: str) -> None:
    """Raises SpecError if some of the outputs that were chosen lie in a datastore."""
    rows = outputs.stored_for_attempt(run, attempt)
    stored = rows.filter(path=chosen).first() or outputs.rows_below(rows, chosen).first()
    if stored is not None:
        raise SpecError(
            "path",
            f"{stored.path} lies in a datastore, at {stored.place}: make a dataset of that datastore and the "
            "path of its folder there instead",
        )


def _list_files(rows: QuerySet[Artifact], run: Run, chosen: str) -> list[ListedFile]:
    """Returns the files with their paths below what was chosen. Raises SpecError if there are too many."""
    totals = rows.aggregate(files=Count("pk"), bytes=Sum("size_bytes"))
    if wrong := file_rules.room_refusal(totals["files"], totals["bytes"]):
        raise SpecError("path", f"{run} has {totals['files']:,} files there: {wrong}")
    start = len(chosen) + 1 if chosen else 0
    return [
        ListedFile(
            row.path[start:] or PurePosixPath(row.path).name,
            row.size_bytes,
            content_etag(row.sha256),
            row.created_at.timestamp(),
        )
        for row in rows.iterator()
    ]

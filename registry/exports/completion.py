"""Completes exports whose run has ended: makes the new version, or stores why there is none. Every call may
be repeated."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from clusters.task_messages import send_task_soon
from jobs import causes, lifecycle, outputs
from jobs.models import Run
from jobs.states import FINAL, Reason, RunState
from registry.errors import RegistryError
from registry.exports import reports
from registry.exports.states import ExportState
from registry.models import Export, ModelVersion
from registry.registration import EXPORT, Words, add_version
from registry.registration import outputs as origin_of_outputs
from trainhub_launch.json_types import JsonObject
from workspaces.database.compiled_queries import compiled
from workspaces.stored_files import blob_cache, blobs
from workspaces.task_names import TaskName

log = logging.getLogger(__name__)
FOLDER, REPORT = "onnx", "export-report.json"
DELETED = "The run of the export was deleted before the export had ended."
NOTHING = "The run ended without a model in outputs/onnx/."


def follow_exports(run: Run) -> None:
    """Sends a task that completes the exports of `run`. It is called in the transaction that ends the run."""
    if _waiting(run.pk):
        # A periodic task does the same every ten seconds, should this one get lost.
        send_task_soon(TaskName.SETTLE_EXPORTS)


@compiled
def _waiting(run_id: str) -> QuerySet[Export, tuple[int]]:
    return Export.objects.filter(run_id=run_id, state=ExportState.WAITING).values_list("pk")


def settle_all() -> None:
    """Completes every waiting export whose run has ended or was deleted."""
    over = Q(run=None) | Q(run__state__in=FINAL)
    for export_id in list(
        Export.objects.filter(over, state=ExportState.WAITING).order_by("pk").values_list("pk", flat=True)
    ):
        try:
            finish_export(export_id)
        except Exception:
            # One that fails must not keep the others waiting.
            log.exception("Export %s could not be settled.", export_id)


def finish_export(export_id: int) -> None:
    export = (
        Export.objects.select_related("version__model__workspace", "run", "created_by")
        .filter(pk=export_id)
        .first()
    )
    if export is None or export.state != ExportState.WAITING:
        return
    if export.run is None:
        _refuse(export, DELETED, {})
        return
    if export.run.state not in FINAL:
        return
    report = _report(export.run)
    why = _why_not(export.run, report)
    if why:
        _refuse(export, why, report)
        return
    try:
        _make(export, export.run, report)
    except RegistryError as error:
        _refuse(export, f"The run has completed, but {error.message}.", report)


def _why_not(run: Run, report: dict[str, Any]) -> str:
    """Returns why the run did not make a version, or "" if it left a model that it found to be equal."""
    if run.state == RunState.FAILED and report.get("refusal"):
        return str(report["refusal"])
    if run.state != RunState.COMPLETED:
        cause = causes.for_run(run)
        return cause.line if cause is not None else run.sentence
    # The job wrote the report, so a run that ended well proves nothing unless the outputs were compared.
    if (
        not report.get("differences")
        or report.get("refusal")
        or not all(item["within"] for item in report["differences"])
    ):
        return NOTHING
    return "" if outputs.latest(run).filter(path__startswith=f"{FOLDER}/").exists() else NOTHING


def _report(run: Run) -> dict[str, object]:
    # A job wrote this file: its size is checked before it is read.
    artifact = outputs.latest(run).filter(path=REPORT, size_bytes__lte=reports.MAX_BYTES).first()
    if artifact is None or not blobs.exists(artifact.sha256):
        return {}
    return reports.read(blob_cache.local_path(artifact.sha256).read_bytes())


def _make(export: Export, run: Run, report: dict[str, Any]) -> None:
    """Makes the version and marks the export as done in one transaction. Of two that do so at once, only one
    makes it."""
    parent = export.version
    origin = replace(origin_of_outputs(run, FOLDER), kind=EXPORT, parent=parent)
    words = Words(f"ONNX, opset {report.get('opset', '?')}, exported from version {parent.number}.")
    with transaction.atomic():
        fresh = Export.objects.select_for_update().filter(pk=export.pk, state=ExportState.WAITING).first()
        if fresh is None:
            return
        version = add_version(parent.model.workspace, parent.model.name, origin, export.created_by, words)
        _end(fresh, ExportState.DONE, report, result=version)
        _announce(run)


def _refuse(export: Export, why: str, report: dict[str, Any]) -> None:
    with transaction.atomic():
        fresh = Export.objects.select_for_update().filter(pk=export.pk, state=ExportState.WAITING).first()
        if fresh is None:
            return
        _end(fresh, ExportState.REFUSED, report, message=why)
        if export.run is not None:
            _announce(export.run)


def _end(
    export: Export,
    state: ExportState,
    report: JsonObject,
    *,
    message: str = "",
    result: ModelVersion | None = None,
) -> None:
    export.state, export.report, export.message, export.result = state, report or None, message, result
    export.ended_at = timezone.now()
    export.save(update_fields=["state", "report", "message", "result", "ended_at"])


def _announce(run: Run) -> None:
    """Publishes a change of the run, so that open pages show the new state of the export."""
    lifecycle.publish_change(run, RunState(run.state), Reason(run.reason))

"""An export ends with its run: a new version, or the sentence that says why not. May be asked any number of
times."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from jobs import causes, lifecycle, outputs
from jobs.models import Run
from jobs.states import FINAL, Reason, RunState
from jobs.task_messages import send_task_soon
from registry.errors import RegistryError
from registry.exports import reports
from registry.exports.states import ExportState
from registry.models import Export, ModelVersion
from registry.registration import EXPORT, Words, add_version
from registry.registration import outputs as origin_of_outputs
from workspaces.stored_files import blobs

log = logging.getLogger(__name__)
FOLDER, REPORT = "onnx", "export-report.json"
DELETED = "The run of the export was deleted before the export had ended."
NOTHING = "The run ended without a model in outputs/onnx/."


def follow(run: Run) -> None:
    """A run has ended, in the transaction that ends it: where it was an export, have that settled soon."""
    if Export.objects.filter(run=run, state=ExportState.WAITING).exists():
        send_task_soon("registry.tasks.settle_exports")


def settle_all() -> None:
    """Every export whose run has ended, or is gone."""
    over = Q(run=None) | Q(run__state__in=FINAL)
    for export_id in list(
        Export.objects.filter(over, state=ExportState.WAITING).order_by("pk").values_list("pk", flat=True)
    ):
        try:
            settle(export_id)
        except Exception:
            # One that fails must not keep the others waiting.
            log.exception("Export %s could not be settled.", export_id)


def settle(export_id: int) -> None:
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
        _refuse(export, f"The run has ended well, but {error.message}.", report)


def _why_not(run: Run, report: dict[str, Any]) -> str:
    """ "" where the run left a model that it found to be the same."""
    if run.state == RunState.FAILED and report.get("refusal"):
        return str(report["refusal"])
    if run.state != RunState.COMPLETED:
        cause = causes.for_run(run)
        return cause.line if cause is not None else run.sentence
    if (
        not report.get("differences")
        or report.get("refusal")
        or not all(item["within"] for item in report["differences"])
    ):
        return NOTHING
    return "" if outputs.latest(run).filter(path__startswith=f"{FOLDER}/").exists() else NOTHING


def _report(run: Run) -> dict[str, Any]:
    found = outputs.latest(run).filter(path=REPORT, size_bytes__lte=reports.MOST_BYTES).first()
    if found is None or not blobs.exists(found.sha256):
        return {}
    return reports.read(blobs.path(found.sha256).read_bytes())


def _make(export: Export, run: Run, report: dict[str, Any]) -> None:
    """The version and the row that names it, together: of two that settle at once, one makes it."""
    parent = export.version
    origin = replace(origin_of_outputs(run, FOLDER), kind=EXPORT, parent=parent)
    words = Words(f"ONNX, opset {report.get('opset', '?')}, exported from version {parent.number}.")
    with transaction.atomic():
        fresh = Export.objects.select_for_update().filter(pk=export.pk, state=ExportState.WAITING).first()
        if fresh is None:
            return
        made = add_version(parent.model.workspace, parent.model.name, origin, export.created_by, words)
        _end(fresh, ExportState.DONE, report, result=made)
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
    report: dict[str, Any],
    *,
    message: str = "",
    result: ModelVersion | None = None,
) -> None:
    export.state, export.report, export.message, export.result = state, report or None, message, result
    export.ended_at = timezone.now()
    export.save(update_fields=["state", "report", "message", "result", "ended_at"])


def _announce(run: Run) -> None:
    """Pages that show the export hear of it as of a change of its run."""
    lifecycle.publish_change(run, RunState(run.state), Reason(run.reason))

"""A run in the formats of other launchers: a tab of its page, and its files to download."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from jobs.exports import FORMATS, export_spec
from jobs.exports.export import SpecExport
from jobs.models import Run
from jobs.states import RunKind
from jobs.views.run_lookup import run_numbered
from jobs.views.tabs import Tab
from trainhub_launch.errors import SpecError
from trainhub_launch.spec_reader import read_spec
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role

DEFAULT = "sbatch"
# A run on many nodes has as many files.
MAX_FILES = 4


@require_safe
@needs(Role.VIEWER)
def download_export(request: WorkspaceRequest, number: int) -> HttpResponse:
    """The file `file` of the format `to`; without `file` all of them, as a zip if there are several."""
    run = run_numbered(request.principal, number)
    to, name = _format_name(request), request.GET.get("file", "")
    if run.kind != RunKind.JOB:
        raise Http404
    try:
        files = _export(run, to).files
    except SpecError as error:
        raise Http404 from error
    if not name and len(files) > 1:
        return _attachment(f"run-{number}-{to}.zip", _zip(files), "application/zip")
    name = name or next(iter(files))
    if name not in files:
        raise Http404
    return _attachment(name, files[name].encode(), "text/plain; charset=utf-8")


def _attachment(name: str, content: bytes, content_type: str) -> HttpResponse:
    response = HttpResponse(content, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _zip(files: Mapping[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return out.getvalue()


def _export(run: Run, to: str) -> SpecExport:
    return export_spec(read_spec(run.spec), to)


def _format_name(request: HttpRequest) -> str:
    name = request.GET.get("to", DEFAULT)
    return name if name in FORMATS else DEFAULT


def _context(run: Run, _: int, request: HttpRequest) -> dict[str, object]:
    to = _format_name(request)
    context: dict[str, object] = {"formats": FORMATS, "to": to, "chosen": FORMATS[to]}
    try:
        export = _export(run, to)
    except SpecError as error:
        return context | {"refusal": f"{error.field}: {error.message}"}
    files = list(export.files.items())
    return context | {"export": export, "files": files[:MAX_FILES], "more": len(files[MAX_FILES:])}


def _shows(run: Run) -> bool:
    return run.kind == RunKind.JOB


TAB = Tab("Export", _context, stands=True, is_detail=True, shows=_shows)

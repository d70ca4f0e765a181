"""The preview of one table, figure or HTML file, as a part of a page that shows files over steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath
from urllib.parse import quote

from django.http import Http404, HttpResponse, HttpResponseBadRequest
from django.shortcuts import render
from django.utils.cache import patch_cache_control
from django.views.decorators.http import require_GET

from jobs.views.lanes import requested_attempt
from jobs.views.run_lookup import run_numbered
from tracking.artifacts import paths
from tracking.artifacts.file_owners import FileRow, RunFiles
from tracking.artifacts.file_responses import is_html
from tracking.artifacts.html_pages import MAX_HTML_BYTES, has_scripts
from tracking.artifacts.previews.documents import NotPreviewable
from tracking.artifacts.previews.file_preview import FilePreview, preview_file
from tracking.artifacts.previews.isolation import MAX_JSON_BYTES, PreviewBusy, isolated_figure_json
from tracking.mlflow.protocol.errors import MlflowError
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role
from workspaces.stored_files import blobs

# A page shows many tables at once; the preview of the file alone shows more rows.
MAX_ROWS = 50
NOT_SHOWN = (
    "This JSON is neither a table (an object with columns and data) nor a plotly figure "
    "(an object with data and layout), or parsing it takes too much time or memory."
)


@require_GET
@needs(Role.VIEWER)
def file_part(request: WorkspaceRequest, number: int) -> HttpResponse:
    run = run_numbered(request.principal, number)
    place = RunFiles(run, requested_attempt(run, request.GET.get("attempt", "")))
    try:
        path = paths.check_path(request.GET.get("file", ""))
    except MlflowError as error:
        return HttpResponseBadRequest(f"file: {error.message}", content_type="text/plain")
    row = place.rows.filter(path=path).first()
    if row is None:
        raise Http404
    query = "" if place.attempt == run.attempt else f"?attempt={place.attempt}"
    address = f"{quote(f'{place.root}/{path}')}{query}"
    context = {
        "seen": _html_preview(row) if is_html(path) else _data_preview(row),
        "name": PurePosixPath(path).name,
        "figure_url": f"/api/v1/artifacts/figures/{address}",
        "html_url": f"/api/v1/artifacts/html/{address}",
    }
    response = render(request, "tracking/_media_file.html", context)
    patch_cache_control(response, no_store=True)
    return response


def _data_preview(row: FileRow) -> FilePreview:
    """Returns the preview of a table or figure; of another file, a sentence."""
    preview = preview_file(row)
    if preview.table is not None and len(preview.table.rows) > MAX_ROWS:
        return replace(preview, table=replace(preview.table, rows=preview.table.rows[:MAX_ROWS]), is_cut=True)
    if preview.kind in ("table", "figure", ""):
        return preview
    if not row.path.lower().endswith(".json"):
        return FilePreview("", sentence="This file cannot be read as a table.")
    if row.size_bytes > MAX_JSON_BYTES:
        return FilePreview("", sentence=f"This file is larger than {MAX_JSON_BYTES // 2**20} MiB.")
    return FilePreview("", sentence=NOT_SHOWN)


def _html_preview(row: FileRow) -> FilePreview:
    if not blobs.exists(row.sha256):
        return preview_file(row)
    if row.size_bytes > MAX_HTML_BYTES:
        return FilePreview("", sentence=f"This file is larger than {MAX_HTML_BYTES // 2**20} MiB.")
    if not has_scripts(row):
        return FilePreview("html")
    try:
        # What plotly writes as HTML is drawn from its data, without its scripts.
        isolated_figure_json(blobs.path(row.sha256), row.size_bytes)
    except (NotPreviewable, PreviewBusy):
        return FilePreview("html", sentence="Its scripts do not run here.")
    return FilePreview("figure")

"""Views of files for the pages: downloads, images, previews, figures, HTML and zips. Untrusted content
cannot run in this origin: it is a download, an image without scripts, or stands in a sandboxed frame."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import wraps
from pathlib import PurePosixPath

from django.conf import settings
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from jobs.outputs import rows_below
from tracking.artifacts import file_owners, paths
from tracking.artifacts.file_owners import FileOwner, FileRow, ListedFile, RunFiles
from tracking.artifacts.file_responses import HEADERS, PAGES, download, image_type, sound_type
from tracking.artifacts.previews import isolation
from tracking.artifacts.previews.documents import NotPreviewable
from tracking.artifacts.previews.file_preview import as_data, preview_file
from tracking.callers import Caller
from tracking.mlflow.protocol.errors import INVALID, MISSING, MlflowError
from tracking.mlflow.protocol.http import require_caller
from workspaces.http.problems import Handler, Problem
from workspaces.http.requests import query_integer
from workspaces.http.threads import in_thread
from workspaces.object_store.errors import StoreUnavailable
from workspaces.stored_files import blob_cache, blobs, zip_stream
from workspaces.stored_files.zip_stream import ZipEntry

MAX_SELECTED = 5000
FIGURE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Figure</title>
<style>html, body, #figure {{ margin: 0; height: 100%; overflow: hidden; background: #fff }}</style></head>
<body>
<div id="figure"></div><script type="application/json" id="told">{figure}</script>
{scripts}</body></html>"""
# Static files; the only scripts that the frame may run.
PLOTLY = "vendor/plotly-strict-4.1.1.min.js"
FIGURE_SCRIPTS = (PLOTLY, "js/artifacts/figure.js")
MAX_PAGE_BYTES = 8 * 2**20
# `log_figure` and `write_html(include_plotlyjs="cdn")` load Plotly from there; a frame loads it from the hub.
_PLOTLY_ELSEWHERE = re.compile(
    r"""<script\b[^<>]{0,300}\bsrc=["']https://cdn\.plot\.ly/plotly-[\w.-]{1,40}\.js["'][^<>]{0,300}>"""
    r"""\s{0,20}</script>"""
)


def problem_responses(handler: Handler) -> Handler:
    """Returns `handler` with its exceptions converted to RFC 9457 problems, as everywhere below /api/v1/."""

    @wraps(handler)
    async def guarded(request: Request) -> Response:
        try:
            return await handler(request)
        except MlflowError as error:
            title = {401: "Not signed in", 403: "Not allowed", 404: "Not found"}.get(
                error.status, "Bad request"
            )
            return Problem(error.status, title, error.message).response()
        except Problem as problem:
            return problem.response()
        except StoreUnavailable as error:
            return Problem(503, "Not readable now", str(error), Retry_After="10").response()

    return guarded


@problem_responses
async def send_file(request: Request) -> Response:
    """Sends a file as a download; supports Range."""
    caller, place, path = await _find_owner(request)
    return download(await in_thread(file_owners.find_file, place, path), caller.user)


@problem_responses
async def send_image(request: Request) -> Response:
    """Sends an image for an `<img>` of this site; opened by itself it is a download."""
    row = await _row(request)
    media_type = image_type(row.path)
    if media_type is None:
        raise Problem(400, "Bad request", f"{row.path} is not an image that can be shown here.")
    return download(row, None, media_type=media_type)


@problem_responses
async def send_sound(request: Request) -> Response:
    """Sends a sound for an `<audio>` of this site; supports Range, by which browsers seek."""
    row = await _row(request)
    media_type = sound_type(row.path)
    if media_type is None:
        raise Problem(400, "Bad request", f"{row.path} is not a sound that can be played here.")
    return download(row, None, media_type=media_type)


@problem_responses
async def send_figure(request: Request) -> Response:
    """Sends a plotly figure for a sandboxed frame without origin, cookies and network access."""
    row = await _row(request)
    if row.size_bytes > isolation.MAX_JSON_BYTES:
        raise Problem(400, "Bad request", "The figure is too large to be drawn here; download it.")
    content = await in_thread(_figure, row)
    html = FIGURE.format(figure=content, scripts="".join(map(_script_tag, FIGURE_SCRIPTS)))
    return _frame(html, _addresses(request, FIGURE_SCRIPTS))


@problem_responses
async def send_page(request: Request) -> Response:
    """Sends HTML for a sandboxed frame without origin, cookies and network access, where its scripts run."""
    row = await _row(request)
    if PurePosixPath(row.path).suffix.lower() not in PAGES:
        raise Problem(400, "Bad request", f"{row.path} is not HTML.")
    # As the page of a tab it could lead the reader elsewhere, under the hub's address.
    if request.headers.get("sec-fetch-dest") == "document":
        raise Problem(400, "Bad request", f"{row.path} is shown in the tab Media only; download it instead.")
    if row.size_bytes > MAX_PAGE_BYTES:
        sentence = (
            f"The page is larger than {MAX_PAGE_BYTES // 2**20} MiB and is not shown here; download it."
        )
        return _frame(f"<p>{sentence}</p>", "'none'")
    return _frame(await in_thread(_page, row), f"'unsafe-inline' {_addresses(request, (PLOTLY,))}")


@problem_responses
async def send_preview(request: Request) -> Response:
    """Sends the beginning of a table or of text as JSON, or says that the file is a figure."""
    row = await _row(request)
    return JSONResponse(as_data(await in_thread(preview_file, row)), headers=HEADERS)


@problem_responses
async def send_zip(request: Request) -> Response:
    """Sends a folder as a zip; with `name`, which may repeat, only those files and folders. Supports
    Range."""
    caller = await require_caller(request)
    address = paths.parse_address(request.path_params["path"], is_folder=True)
    names = request.query_params.getlist("name")
    if len(names) > MAX_SELECTED:
        raise Problem(400, "Bad request", f"name: choose at most {MAX_SELECTED}, or the whole folder.")
    place = await in_thread(_find_place, caller, address, _attempt(request))
    entries = await in_thread(_entries, place, address.path, [paths.check_path(name) for name in names])
    name = PurePosixPath(address.path).name or _name(place)
    return await zip_stream.response(request, entries, f"{name}.zip", headers=HEADERS)


def _frame(html: str, script_sources: str) -> HTMLResponse:
    """Returns a page that may stand in a frame of this site. It has no origin, so no cookies and no storage,
    and it loads nothing but these scripts."""
    policy = (
        f"sandbox allow-scripts; default-src 'none'; script-src {script_sources}; base-uri 'none'; "
        "form-action 'none'; "
        "style-src 'unsafe-inline'; img-src data: blob:; frame-ancestors 'self'"
    )
    # This policy replaces the one in HEADERS, which forbids all scripts.
    return HTMLResponse(
        html, headers={**HEADERS, "Content-Security-Policy": policy, "X-Frame-Options": "SAMEORIGIN"}
    )


def _addresses(request: Request, scripts: Sequence[str]) -> str:
    """Returns the full addresses of these static files; `'self'` would allow every script of the site."""
    origin = str(request.url.replace(path="", query=""))
    return " ".join(f"{origin}{settings.STATIC_URL}{path}" for path in scripts)


def _script_tag(path: str) -> str:
    return f'<script src="{settings.STATIC_URL}{path}"></script>'


async def _row(request: Request) -> FileRow:
    _, place, path = await _find_owner(request)
    return await in_thread(file_owners.find_hub_file, place, path)


async def _find_owner(request: Request) -> tuple[Caller, FileOwner, str]:
    """Returns who downloads, the owner of the file, and its path there."""
    caller = await require_caller(request)
    address = paths.parse_address(request.path_params["path"])
    return caller, await in_thread(_find_place, caller, address, _attempt(request)), address.path


def _attempt(request: Request) -> int:
    return query_integer(request, "attempt", 0, maximum=2**31)


def _find_place(caller: Caller, address: paths.Address, attempt: int) -> FileOwner:
    place = file_owners.find_owner(caller, address)
    return replace(place, attempt=attempt) if isinstance(place, RunFiles) else place


def _figure(row: FileRow) -> str:
    """Returns the figure as JSON that is safe inside HTML, without images that the frame would not load."""
    try:
        return isolation.isolated_figure_json(blob_cache.local_path(row.sha256), row.size_bytes).decode()
    except NotPreviewable as error:
        raise Problem(400, "Bad request", f"{row.path} cannot be drawn: {error}.") from error
    except isolation.PreviewBusy as error:
        raise Problem(
            503, "Not yet", f"{row.path} cannot be drawn now: {error}. Try again.", Retry_After="5"
        ) from error


def _page(row: FileRow) -> str:
    """Returns the HTML of a file, which gets Plotly from the hub."""
    text = blob_cache.local_path(row.sha256).read_bytes().decode(errors="replace")
    return _PLOTLY_ELSEWHERE.sub(_script_tag(PLOTLY), text)


def _entries(place: FileOwner, folder: str, names: Sequence[str]) -> list[ZipEntry]:
    """Returns the selected files as zip entries, with paths relative to the folder. Raises MlflowError if
    there are none."""
    start = len(folder) + 1 if folder else 0
    chosen, inside = set(names), tuple(f"{name}/" for name in names)

    def is_chosen(row: ListedFile) -> bool:
        # A selected folder stands for all files below it.
        return not names or row.path[start:] in chosen or row.path[start:].startswith(inside)

    if stored := list(filter(is_chosen, rows_below(place.stored_rows, folder))):
        # Otherwise the zip would lack them without a word.
        raise MlflowError(
            INVALID,
            f"Files in a datastore are in no zip: {len(stored)} of those chosen, such as {stored[0].place}. "
            "Choose others, and download those one by one, or with MLflow's client.",
        )
    rows = list(filter(is_chosen, rows_below(place.rows, folder)))
    if not rows:
        raise MlflowError(MISSING, "There is no such file or folder.")
    # Checked before the first byte is sent, because a started zip cannot report an error.
    absent = blob_cache.absent_hashes(row.sha256 for row in rows)
    missing = next((row for row in rows if row.sha256 in absent), None)
    if missing is not None:
        raise MlflowError(MISSING, f"The bytes of '{missing.path}' {blobs.absence(missing.sha256)}.")
    # Always in the same order: a later range request must continue the same bytes.
    rows.sort(key=lambda row: row.path)
    return [ZipEntry(row.path[start:], blobs.path(row.sha256), row.created_at, row.sha256) for row in rows]


def _name(place: FileOwner) -> str:
    return f"run-{place.run.number}" if isinstance(place, RunFiles) else place.model.name


routes = [
    Route("/api/v1/artifacts/files/{path:artifact_path}", send_file, methods=["GET", "HEAD"]),
    Route("/api/v1/artifacts/images/{path:artifact_path}", send_image, methods=["GET", "HEAD"]),
    Route("/api/v1/artifacts/sounds/{path:artifact_path}", send_sound, methods=["GET", "HEAD"]),
    Route("/api/v1/artifacts/figures/{path:artifact_path}", send_figure, methods=["GET"]),
    Route("/api/v1/artifacts/pages/{path:artifact_path}", send_page, methods=["GET"]),
    Route("/api/v1/artifacts/previews/{path:artifact_path}", send_preview, methods=["GET"]),
    Route("/api/v1/artifacts/zip/{path:artifact_path}", send_zip, methods=["GET", "HEAD"]),
]

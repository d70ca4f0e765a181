"""What the pages need of files: themselves, images, figures, and many of them as a zip. A stranger's content
stays harmless here: a download, an image that runs nothing, or a figure in a frame of its own that reaches
nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import wraps
from pathlib import PurePosixPath

from django.conf import settings
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from tracking.artifacts import file_owners, paths
from tracking.artifacts.file_owners import Place, Row, RunFiles
from tracking.artifacts.file_responses import HEADERS, download, image_type
from tracking.artifacts.previews import isolation
from tracking.artifacts.previews.documents import NotShown
from tracking.callers import Caller
from tracking.mlflow.protocol.errors import MISSING, MlflowError
from tracking.mlflow.protocol.http import require_caller
from workspaces.http.problems import Handler, Problem
from workspaces.http.requests import query_integer
from workspaces.http.threads import in_thread
from workspaces.stored_files import blobs, zip_stream
from workspaces.stored_files.zip_stream import Entry

MOST_CHOSEN = 5000
FIGURE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Figure</title>
<style>html, body, #figure {{ margin: 0; height: 100%; overflow: hidden; background: #fff }}</style></head><body>
<div id="figure"></div><script type="application/json" id="told">{told}</script>
{scripts}</body></html>"""
FIGURE_SCRIPTS = ("vendor/plotly-strict-4.1.1.min.js", "js/artifacts/figure.js")
"""Below the address of static files: the only two that the frame may run."""


def door(handler: Handler) -> Handler:
    """Turn refusals into problems, as everywhere below /api/v1/."""

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

    return guarded


@door
async def file(request: Request) -> Response:
    """As a download, with Range."""
    return download(await _row(request))


@door
async def image(request: Request) -> Response:
    """For an `<img>` of ours; opened by itself it is a download."""
    row = await _row(request)
    media_type = image_type(row.path)
    if media_type is None:
        raise Problem(400, "Bad request", f"{row.path} is no image that is shown here.")
    return download(row, media_type=media_type)


@door
async def figure(request: Request) -> Response:
    """A plotly figure, drawn in a frame that has no origin, no cookie and no way out."""
    row = await _row(request)
    if row.size_bytes > isolation.MAX_JSON_BYTES:
        raise Problem(400, "Bad request", "The figure is too large to be drawn here; download it.")
    told = await in_thread(_figure, row)
    origin = str(request.url.replace(path="", query=""))
    scripts = " ".join(f"{origin}{settings.STATIC_URL}{path}" for path in FIGURE_SCRIPTS)
    policy = (
        f"sandbox allow-scripts; default-src 'none'; script-src {scripts}; base-uri 'none'; "
        "form-action 'none'; "
        "style-src 'unsafe-inline'; img-src data: blob:; frame-ancestors 'self'"
    )
    tags = "".join(f'<script src="{settings.STATIC_URL}{path}"></script>' for path in FIGURE_SCRIPTS)
    html = FIGURE.format(told=told, scripts=tags)
    return HTMLResponse(
        html, headers={**HEADERS, "Content-Security-Policy": policy, "X-Frame-Options": "SAMEORIGIN"}
    )


@door
async def archive(request: Request) -> Response:
    """A folder as a zip; with `name` (several) only these of its files and folders. With Range."""
    who = await require_caller(request)
    address = paths.address(request.path_params["path"], is_folder=True)
    names = request.query_params.getlist("name")
    if len(names) > MOST_CHOSEN:
        raise Problem(400, "Bad request", f"name: choose at most {MOST_CHOSEN}, or the whole folder.")
    place = await in_thread(_place, who, address, _attempt(request))
    entries = await in_thread(_entries, place, address.path, [paths.checked(name) for name in names])
    name = PurePosixPath(address.path).name or _name(place)
    return await zip_stream.response(request, entries, f"{name}.zip", headers=HEADERS)


async def _row(request: Request) -> Row:
    who = await require_caller(request)
    address = paths.address(request.path_params["path"])
    return await in_thread(_found, who, address, _attempt(request))


def _attempt(request: Request) -> int:
    return query_integer(request, "attempt", 0, maximum=2**31)


def _found(who: Caller, address: paths.Address, attempt: int) -> Row:
    return file_owners.row_at(_place(who, address, attempt), address.path)


def _place(who: Caller, address: paths.Address, attempt: int) -> Place:
    place = file_owners.find(who, address)
    return replace(place, attempt=attempt) if isinstance(place, RunFiles) else place


def _figure(row: Row) -> str:
    """As JSON that may stand inside a page, without the images that would not be loaded."""
    try:
        return isolation.figure(blobs.path(row.sha256), row.size_bytes).decode()
    except NotShown as error:
        raise Problem(400, "Bad request", f"{row.path} cannot be drawn: {error}.") from error
    except isolation.Busy as error:
        raise Problem(
            503, "Not yet", f"{row.path} cannot be drawn now: {error}. Try again.", Retry_After="5"
        ) from error


def _entries(place: Place, folder: str, names: Sequence[str]) -> list[Entry]:
    """The chosen ones as entries of a zip, by their paths below the folder; raises MlflowError where there is
    nothing."""
    start = len(folder) + 1 if folder else 0
    rows = list(file_owners.below(place.rows, folder))
    if names:
        chosen, inside = set(names), tuple(f"{name}/" for name in names)
        rows = [row for row in rows if row.path[start:] in chosen or row.path[start:].startswith(inside)]
    if not rows:
        raise MlflowError(MISSING, "There is no such file or folder.")
    missing = next((row for row in rows if not blobs.exists(row.sha256)), None)
    if missing is not None:
        raise MlflowError(MISSING, f"The bytes of '{missing.path}' {blobs.absence(missing.sha256)}.")
    rows.sort(key=lambda row: row.path)
    return [Entry(row.path[start:], blobs.path(row.sha256), row.created_at, row.sha256) for row in rows]


def _name(place: Place) -> str:
    return f"run-{place.run.number}" if isinstance(place, RunFiles) else place.model.name


routes = [
    Route("/api/v1/artifacts/files/{path:told}", file, methods=["GET", "HEAD"]),
    Route("/api/v1/artifacts/images/{path:told}", image, methods=["GET", "HEAD"]),
    Route("/api/v1/artifacts/figures/{path:told}", figure, methods=["GET"]),
    Route("/api/v1/artifacts/zip/{path:told}", archive, methods=["GET", "HEAD"]),
]

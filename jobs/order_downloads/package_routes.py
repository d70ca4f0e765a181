"""The package index of one order (PEP 503 and 691), and its packages of conda: a node installs from it what
the order's lock names, and nothing else."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Iterable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from environments.models import LockedFile
from environments.packages import package_store
from environments.packages.upstream import FetchFailed
from environments.packages.wheel_metadata import read_metadata
from jobs.order_downloads.package_tickets import OrderFiles, files_of_order, order_of_ticket
from workspaces.http.problems import Problem, not_found, problem_responses
from workspaces.http.threads import in_thread
from workspaces.stored_files import blobs
from workspaces.stored_files.conditional_response import PRIVATE
from workspaces.stored_files.responses import StoredFileResponse

JSON = "application/vnd.pypi.simple.v1+json"
METADATA = ".metadata"
NO_SNIFFING = {"X-Content-Type-Options": "nosniff", **PRIVATE}


@problem_responses
async def prepare(request: Request) -> Response:
    """Fetches the files of the lock from their indexes, and says how many the hub has."""
    files = await _files(request)
    progress = await in_thread(_prepare, files)
    failures = [{"file": file, "reason": reason} for file, reason in progress.failures]
    body = {
        "files": progress.files,
        "ready": progress.ready,
        "bytes": progress.bytes,
        "failures": failures,
    }
    return JSONResponse(body, headers=PRIVATE)


@problem_responses
async def project(request: Request) -> Response:
    """Lists the files of a package, for pip and uv."""
    allowed = await _files(request)
    name = request.path_params["name"]
    files = await in_thread(_files_of_project, allowed, name)
    if not files:
        raise not_found(f"The lock of this order names no package {name[:100]!r}.")
    # Relative, so that no proxy in front of the hub changes what it leads to.
    links = [(file, f"../../files/{file.sha256}/{file.filename}") for file in files]
    if JSON in request.headers.get("accept", ""):
        return Response(JSONResponse(_as_json(name, links)).body, media_type=JSON, headers=NO_SNIFFING)
    return Response(_as_html(links), media_type="text/html; charset=utf-8", headers=NO_SNIFFING)


@problem_responses
async def file(request: Request) -> Response:
    """Serves a file of the lock, or with `.metadata` behind its name the metadata in it; supports Range."""
    allowed = await _files(request)
    sha256, filename = request.path_params["sha256"], request.path_params["filename"]
    wheel = filename.removesuffix(METADATA)
    row = await in_thread(_locked_file, allowed, sha256, wheel)
    if row is None:
        raise not_found("The lock of this order names no such file.")
    if not await in_thread(package_store.is_stored, row):
        await _fetch(row)
    if filename != wheel:
        data = await in_thread(read_metadata, sha256)
        if data is None:
            raise not_found(f"{wheel} has no metadata.")
        return Response(data, media_type="text/plain; charset=utf-8", headers=NO_SNIFFING)
    return StoredFileResponse(blobs.path(sha256), sha256=sha256, filename=wheel, headers=NO_SNIFFING)


async def _files(request: Request) -> OrderFiles:
    order = order_of_ticket(request.headers.get("authorization", ""))
    if order is None:
        detail = "The ticket of an order is needed."
        raise Problem(401, "Not signed in", detail, WWW_Authenticate='Basic realm="packages"')
    files = await in_thread(files_of_order, *order)
    if files is None:
        raise Problem(403, "Over", "This attempt is over, and with it its ticket.")
    return files


async def _fetch(row: LockedFile) -> None:
    try:
        # Shielded: a client that goes away does not end the download for the others that wait for it.
        await asyncio.shield(asyncio.wrap_future(package_store.start_fetch(row)))
    except FetchFailed as error:
        raise Problem(502, "Not fetched", f"The hub could not get {row.filename}: {error}.") from error


def _prepare(files: OrderFiles) -> package_store.PackageProgress:
    return package_store.prepare_files([*files.rows.filter(is_preferred=True)])


def _files_of_project(files: OrderFiles, name: str) -> list[LockedFile]:
    return [*files.rows.filter(project=name, is_conda=False).order_by("filename")]


def _locked_file(files: OrderFiles, sha256: str, filename: str) -> LockedFile | None:
    return files.rows.filter(sha256=sha256, filename=filename).first()


def _as_json(name: str, links: Iterable[tuple[LockedFile, str]]) -> dict[str, Any]:
    files = [
        {
            "filename": row.filename,
            "url": url,
            "hashes": {"sha256": row.sha256},
            "core-metadata": True,
            **({"size": row.size_bytes} if row.size_bytes else {}),
        }
        for row, url in links
    ]
    return {"meta": {"api-version": "1.1"}, "name": name, "files": files}


def _as_html(links: Iterable[tuple[LockedFile, str]]) -> str:
    lines = (
        f'<a href="{html.escape(url)}#sha256={row.sha256}" data-core-metadata="true">'
        f"{html.escape(row.filename)}</a><br>"
        for row, url in links
    )
    return "\n".join(("<!DOCTYPE html>", "<title>Packages</title>", *lines, ""))

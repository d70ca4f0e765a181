"""Serves nodes the uploaded files of datasets, with the ticket of an order: those of the lists that the order
names, and no others."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from starlette.requests import Request
from starlette.responses import Response

from jobs.models import Attempt
from jobs.order_downloads.package_tickets import order_of_ticket, package_ticket
from trainhub_launch.data.downloads import DataDownload
from trainhub_launch.data.manifests import content_sha256, read_manifest
from trainhub_launch.data.stores import HUB, TICKET, URL
from workspaces.http.problems import Problem, not_found, problem_responses
from workspaces.http.threads import in_thread
from workspaces.stored_files import blob_cache, blobs
from workspaces.stored_files.conditional_response import PRIVATE
from workspaces.stored_files.responses import StoredFileResponse

PREFIX = "/api/v1/node/data"
ADDRESS = f"{PREFIX}/{{manifest:str}}/{{sha256:str}}"
# Each has at most 100,000 files, which take some 10 MB.
MAX_LISTS = 4


def order_downloads(attempt: Attempt, hub_url: str) -> tuple[dict[str, DataDownload], str]:
    """Returns the downloads of an attempt as its order names them, those from the hub with address and
    ticket; and that ticket, which is that of the order's packages, "" if none is needed."""
    downloads = {name: DataDownload.from_json(item) for name, item in attempt.downloads.items()}
    of_hub = [name for name, download in downloads.items() if download.store.kind == HUB]
    ticket = package_ticket(attempt.run_id, attempt.number) if of_hub else ""
    named = {name: _with_ticket(downloads[name], hub_url, ticket) for name in of_hub}
    return {**downloads, **named}, ticket


def _with_ticket(download: DataDownload, hub_url: str, ticket: str) -> DataDownload:
    url = f"{hub_url.rstrip('/')}{PREFIX}/{download.manifest}"
    return replace(download, store=replace(download.store, settings={URL: url, TICKET: ticket}))


@problem_responses
async def file(request: Request) -> Response:
    """Serves a file of a list that the order names; supports Range."""
    order = order_of_ticket(request.headers.get("authorization", ""))
    if order is None:
        raise Problem(401, "Not signed in", "The ticket of an order is needed.", WWW_Authenticate="Bearer")
    sha256 = request.path_params["sha256"]
    await in_thread(_require_listed, order, request.path_params["manifest"], sha256)
    return StoredFileResponse(blobs.path(sha256), sha256=sha256, headers=PRIVATE)


def _require_listed(order: tuple[str, int], manifest: str, sha256: str) -> None:
    run, number = order
    attempt = Attempt.objects.filter(run_id=run, number=number, ended_at=None).only("downloads").first()
    if attempt is None:
        raise Problem(403, "Over", "This attempt is over, and with it its ticket.")
    # Of other stores whoever runs them chooses the ETags, so their lists open nothing here.
    of_hub = [item for item in attempt.downloads.values() if item["store"]["kind"] == HUB]
    named = {item["manifest"] for item in of_hub}
    is_hash = blobs.SHA256.match(sha256)
    if manifest not in named or not is_hash or bytes.fromhex(sha256) not in _hashes(manifest):
        raise not_found("The attempt reads no such file.")
    if not blobs.exists(sha256):
        raise not_found(f"The bytes of this file {blobs.absence(sha256)}.")


@lru_cache(MAX_LISTS)
def _hashes(manifest: str) -> frozenset[bytes]:
    """Returns the contents of a stored list, which never changes."""
    with blob_cache.local_path(manifest).open("rb") as stream:
        return frozenset(bytes.fromhex(content_sha256(file.etag)) for file in read_manifest(stream))

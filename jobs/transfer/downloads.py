"""Serves files: snapshots to the nodes that run them, logs and outputs to members of the workspace."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import PurePosixPath
from typing import NamedTuple

import anyio
from starlette.requests import Request
from starlette.responses import Response

from clusters.models import Node
from jobs import outputs
from jobs.builds.models import BUILD_ATTEMPT, EnvironmentBuild, is_build_id
from jobs.data_orders.models import is_data_order_id
from jobs.logs import log_store
from jobs.models import Artifact, AttemptNode, DataOrder, Run, Snapshot, StoredOutput
from jobs.node_api.auth import require_node_or_person
from jobs.node_orders.work_order import ORDER_ATTEMPT
from jobs.retention.removals import raise_if_removed
from jobs.states import DataKind
from jobs.stored_outputs.download import stored_output_response
from jobs.transfer.log_waits import MAX_WAIT_S, LogPosition, wait_for_bytes
from trainhub_launch.log_names import ENVIRONMENT_LOG, PREPARATION_LOG
from workspaces.access import Principal
from workspaces.http.auth import require_person
from workspaces.http.problems import Problem, not_found, problem_responses
from workspaces.http.requests import query_integer, query_number
from workspaces.http.threads import in_limited_threads, in_thread
from workspaces.stored_files import blob_cache, blobs
from workspaces.stored_files.conditional_response import PRIVATE
from workspaces.stored_files.responses import StoredFileResponse

MAX_RANGE_BYTES = 8 * 1024 * 1024
DEFAULT_RANGE_BYTES = 1024 * 1024
SAFE_HEADERS = {
    # A run's files are untrusted content on the hub's origin: browsers must not run them as page or script.
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    **PRIVATE,
}


# Threads that may wait for the store: those of all other requests stay free.
_store_reads = anyio.CapacityLimiter(32)


class LogRange(NamedTuple):
    """A byte range of a log."""

    run: str
    attempt: int
    name: str
    offset: int
    limit: int


class LogPiece(NamedTuple):
    data: bytes
    size: int
    complete: bool
    attempt: int


@problem_responses
async def snapshot(request: Request) -> Response:
    """Serves a snapshot as a zip; supports Range."""
    who = await require_node_or_person(request)
    sha256 = request.path_params["sha256"]
    if not await in_thread(_may_fetch, who, sha256):
        raise not_found("No such snapshot.")
    return StoredFileResponse(
        blobs.path(sha256),
        sha256=sha256,
        media_type="application/zip",
        filename=f"{sha256[:12]}.zip",
        headers=SAFE_HEADERS,
    )


@problem_responses
async def log(request: Request) -> Response:
    """Serves the raw bytes of a log, starting at `offset`. With `wait_s`, the answer waits for them. With
    `download=1`, the whole log as a file."""
    return await _serve_log(request, request.path_params["name"], partial(_run_and_attempt, request))


@problem_responses
async def build_log(request: Request) -> Response:
    """Serves the log of a build in the same way."""
    build = request.path_params["build"]
    return await _serve_log(request, ENVIRONMENT_LOG, partial(_build, build))


@problem_responses
async def data_order_log(request: Request) -> Response:
    """Serves the log of a node that tests a datastore, or lists its files, in the same way."""
    order = request.path_params["order"]
    return await _serve_log(request, PREPARATION_LOG, partial(_data_order, order))


async def _serve_log(request: Request, name: str, find: Callable[[Principal], tuple[str, int]]) -> Response:
    """`find` returns the run and the attempt of the log; it raises Problem if the person may not read it."""

    async def locate() -> tuple[str, int]:
        return await in_thread(find, await require_person(request))

    who = await require_person(request)
    run, attempt = await in_thread(find, who)
    if request.query_params.get("download") == "1":
        return await in_thread(_log_file, run, attempt, name)
    offset = query_integer(request, "offset", 0)
    limit = min(query_integer(request, "limit", DEFAULT_RANGE_BYTES), MAX_RANGE_BYTES)
    wait_s = query_number(request, "wait_s", 0, maximum=MAX_WAIT_S)
    piece = await _read_piece(LogRange(run, attempt, name, offset, limit))
    if wait_s and piece.size <= offset and not piece.complete:
        position = LogPosition(run, attempt, name, offset)
        if await wait_for_bytes(request, who, position, locate, wait_s):
            run, attempt = await locate()
            piece = await _read_piece(LogRange(run, attempt, name, offset, limit))
    headers = {
        "X-Log-Size": str(piece.size),
        "X-Log-Complete": "true" if piece.complete else "false",
        "X-Log-Attempt": str(piece.attempt),
        **SAFE_HEADERS,
    }
    return Response(piece.data, media_type="text/plain; charset=utf-8", headers=headers)


@problem_responses
async def output(request: Request) -> Response:
    """Serves an output file of the run; supports Range."""
    who = await require_person(request)
    attempt = query_integer(request, "attempt", 0, maximum=2**31)
    row = await in_thread(_output, who, request.path_params["run"], attempt, request.path_params["path"])
    if isinstance(row, StoredOutput):
        return stored_output_response(row, who.user, SAFE_HEADERS)
    name = PurePosixPath(row.path).name
    return StoredFileResponse(
        blobs.path(row.sha256),
        sha256=row.sha256,
        filename=name,
        modified_at=row.created_at,
        headers=SAFE_HEADERS,
    )


def _may_fetch(who: Node | Principal, sha256: str) -> bool:
    """Returns whether the caller may read the snapshot: a node that has to run it, or a member of its
    workspace."""
    if not blobs.SHA256.match(sha256) or not blobs.exists(sha256):
        return False
    if isinstance(who, Node):
        specs = AttemptNode.objects.filter(node=who, settled_at=None).values_list(
            "attempt__run__spec", flat=True
        )
        return any(spec["source"].get("id") == sha256 for spec in specs)
    return Snapshot.objects.filter(workspace=who.workspace, sha256=sha256).exists()


def _run(who: Principal, run_id: str) -> Run:
    run: Run | None = Run.objects.for_workspace(who.workspace).filter(pk=run_id).first()
    if run is None:
        raise not_found("No such run in this workspace.")
    return run


def _run_and_attempt(request: Request, who: Principal) -> tuple[str, int]:
    """Returns the run's id and the attempt, by default the latest."""
    attempt = query_integer(request, "attempt", 0, maximum=2**31)
    run = _run(who, request.path_params["run"])
    return run.pk, attempt or run.attempt


def _build(build_id: str, who: Principal) -> tuple[str, int]:
    builds = EnvironmentBuild.visible_to(who.workspace).filter(pk=build_id)
    if not is_build_id(build_id) or not builds.exists():
        raise not_found("No such build in this workspace.")
    return build_id, BUILD_ATTEMPT


def _data_order(order_id: str, who: Principal) -> tuple[str, int]:
    orders = DataOrder.objects.filter(pk=order_id, datastore__workspace=who.workspace)
    if not is_data_order_id(order_id) or not orders.exists():
        raise not_found("No such order in this workspace.")
    return order_id, ORDER_ATTEMPT


async def _read_piece(requested: LogRange) -> LogPiece:
    if await in_thread(_is_remote, requested):
        return await in_limited_threads(_store_reads, _read_log, requested)
    return await in_thread(_read_log, requested)


def _is_remote(requested: LogRange) -> bool:
    """Returns whether the bytes are in the object store alone."""
    run, number, name = requested.run, requested.attempt, requested.name
    try:
        if log_store.path(run, number, name).exists():
            return False
    except log_store.BadLogName as error:
        raise Problem(400, "Bad request", f"{error}.") from error
    archived = log_store.archive_rows(run, number).get(name)
    return archived is not None and not blob_cache.is_local(archived.sha256)


def _read_log(requested: LogRange) -> LogPiece:
    run, number, name = requested.run, requested.attempt, requested.name
    # `complete` is read before the bytes: the reverse order could miss bytes that arrive in between.
    complete = log_store.is_complete(run, number, name)
    data = log_store.read(run, number, name, requested.offset, requested.limit)
    size = log_store.size(run, number, name)
    if complete and not size:
        raise_if_removed(run, DataKind.LOGS)
    return LogPiece(data, size, complete, number)


def _log_file(run: str, number: int, name: str) -> Response:
    try:
        path = log_store.path(run, number, name)
        facts = log_store.log_facts(run, number, name)
    except log_store.BadLogName as error:
        raise Problem(400, "Bad request", f"{error}.") from error
    except FileNotFoundError:
        raise_if_removed(run, DataKind.LOGS)
        raise not_found("No such log in this attempt.") from None
    archived = log_store.archive_rows(run, number).get(name)
    # Stored bytes of a log never change, so its length identifies its version.
    etag = hashlib.sha256(f"{run}/{number}/{name}/{facts.size}".encode()).hexdigest()
    return StoredFileResponse(
        # Of one that moves to the object store in this moment the file may go: then it is read there.
        path if archived is None or path.exists() else blobs.path(archived.sha256),
        etag=f'"{etag}"',
        sha256=archived.sha256 if archived else "",
        size=facts.size,
        media_type="text/plain; charset=utf-8",
        filename=PurePosixPath(name).name,
        modified_at=datetime.fromtimestamp(facts.written_ms / 1000, UTC),
        headers=SAFE_HEADERS,
    )


def _output(who: Principal, run_id: str, attempt: int, path: str) -> Artifact | StoredOutput:
    run = _run(who, run_id)
    artifact = outputs.for_attempt(run, attempt).filter(path=path).first()
    if artifact is None:
        stored = outputs.stored_for_attempt(run, attempt).filter(path=path).first()
        if stored is None:
            raise_if_removed(run.pk, DataKind.OUTPUTS)
            raise not_found("No such output in this attempt.")
        return stored
    if not blobs.exists(artifact.sha256):
        raise not_found(f"The bytes of {artifact.path} {blobs.absence(artifact.sha256)}.")
    return artifact

"""The raw routes by which a node brings to the hub what it has found in a datastore: the list of its files,
how far it is with that, and the result, which ends the order."""

from __future__ import annotations

import json
import math
import shutil

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from datastores.datasets import listing
from jobs.data_orders.models import is_data_order_id
from jobs.data_orders.states import DataWork
from jobs.models import DataOrder
from jobs.node_orders import order_lifecycle
from jobs.node_orders.received_file import content_length, receive_file
from jobs.node_orders.states import OrderState
from jobs.node_orders.tickets import has_ticket_of
from workspaces.http.problems import Problem, problem_responses
from workspaces.http.requests import read_body
from workspaces.http.threads import in_thread
from workspaces.stored_files import blobs
from workspaces.stored_files.blob_writer import BlobWriter
from workspaces.stored_files.conditional_response import PRIVATE

MAX_RESULT_BYTES = 16 * 1024
# The list of 5 million files, with long names.
MAX_LIST_BYTES = 1024**3
MAX_NOTE = 2000
MAX_COUNT = 2**62


@problem_responses
async def put_list(request: Request) -> Response:
    """PUT: stores the list. Answers with its SHA-256, which the result names."""
    order = await _order(request, DataWork.LIST)
    size = content_length(request)
    if size > MAX_LIST_BYTES:
        raise Problem(413, "Too large", f"A list may have at most {MAX_LIST_BYTES:,} bytes.")
    if await in_thread(_free_bytes) < size:
        raise _disk_full()
    writer = await in_thread(BlobWriter)
    try:
        await receive_file(request, writer, size)
        sha256 = await in_thread(writer.finish)
    except OSError as error:
        if error.errno in blobs.DISK_FULL:
            raise _disk_full() from error
        raise
    finally:
        writer.__exit__(None, None, None)
    return JSONResponse({"order": order.pk, "sha256": sha256}, status_code=201, headers=PRIVATE)


@problem_responses
async def note_progress(request: Request) -> Response:
    """POST: how many files are listed up to now, and how large they are together."""
    order = await _order(request, DataWork.LIST)
    facts = await _body(request)
    files, size = _count(facts, "files"), _count(facts, "bytes")
    if not await in_thread(listing.note_progress, order.version_id or 0, files, size):
        raise Problem(403, "Over", "This version is not listed any more.")
    return Response(status_code=204, headers=PRIVATE)


@problem_responses
async def accept_result(request: Request) -> Response:
    """POST: the result of the order, a JSON object. Ends the order."""
    order = await _order(request)
    facts = await _body(request)
    result = _list_result(facts) if order.work == DataWork.LIST else _test_result(facts)
    await in_thread(_finish, order.pk, result)
    return Response(status_code=204, headers=PRIVATE)


async def _order(request: Request, work: DataWork | None = None) -> DataOrder:
    """Returns the order that its node works on now. Raises Problem without its ticket, and when it is
    over."""
    order_id = request.path_params["order"]
    header = request.headers.get("authorization", "")
    if not is_data_order_id(order_id) or not has_ticket_of(header, order_id):
        raise Problem(401, "Not signed in", "The ticket of this order is needed.", WWW_Authenticate="Bearer")
    order = await in_thread(_open_order, order_id)
    if order is None or (work is not None and order.work != work):
        raise Problem(403, "Over", "This order is over, and with it its ticket.")
    return order


def _open_order(order_id: str) -> DataOrder | None:
    orders = DataOrder.objects.filter(
        pk=order_id, ended_at=None, cancel_requested_at=None, node__revoked_at=None
    )
    return orders.exclude(claimed_at=None).first()


async def _body(request: Request) -> dict[str, object]:
    try:
        body = json.loads(await read_body(request, MAX_RESULT_BYTES))
    except (ValueError, RecursionError) as error:
        raise Problem(400, "Bad request", "The body must be a JSON object.") from error
    if not isinstance(body, dict):
        raise Problem(400, "Bad request", "The body must be a JSON object.")
    return body


def _list_result(facts: dict[str, object]) -> dict[str, object]:
    sha256 = facts.get("sha256")
    if not isinstance(sha256, str) or not blobs.SHA256.match(sha256):
        raise Problem(400, "Bad request", "sha256 must be that of the uploaded list.")
    return {"sha256": sha256, "is_file": facts.get("is_file") is True, "note": _note(facts)}


def _test_result(facts: dict[str, object]) -> dict[str, object]:
    seconds: object = facts.get("seconds")
    if not isinstance(seconds, int | float) or not math.isfinite(seconds) or seconds < 0:
        raise Problem(400, "Bad request", "seconds must be a number of at least 0.")
    return {
        "files": _count(facts, "files"),
        "bytes": _count(facts, "bytes"),
        "seconds": seconds,
        "note": _note(facts),
    }


def _count(facts: dict[str, object], name: str) -> int:
    value = facts.get(name)
    if type(value) is not int or not 0 <= value <= MAX_COUNT:
        raise Problem(400, "Bad request", f"{name} must be a whole number of at least 0.")
    return value


def _note(facts: dict[str, object]) -> str:
    note = facts.get("note", "")
    return note.replace("\0", "")[:MAX_NOTE] if isinstance(note, str) else ""


def _finish(order_id: str, result: dict[str, object]) -> None:
    if sha256 := result.get("sha256"):
        # The row that names it comes with the version.
        blobs.hold(str(sha256))
    with transaction.atomic():
        order = DataOrder.objects.select_for_update(of=("self",)).select_related("node").get(pk=order_id)
        if not order.is_finished:
            order.result = result
            order.save(update_fields=["result"])
            order_lifecycle.finish(order, OrderState.DONE, "", timezone.now())


def _free_bytes() -> int:
    return shutil.disk_usage(settings.DATA_DIR).free


def _disk_full() -> Problem:
    return Problem(507, "Disk full", "The hub's disk is full. An operator frees space below DATA_DIR.")

"""Moves versions that a node must list on: orders the list, orders it again elsewhere if its node was lost,
takes the list over, or says why there is none. Each call may be repeated without harm."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.db import DatabaseError, transaction
from django.db.models import Q
from django.utils import timezone

from clusters.task_messages import send_task_soon
from datastores.datasets import listing
from datastores.models import DatasetVersion
from datastores.states import ListingState
from jobs.data_orders import data_lifecycle, node_choices
from jobs.models import DataOrder
from jobs.node_listings.accepted_list import BadList, accept_list
from jobs.node_orders.states import OrderState
from workspaces.task_names import TaskName

log = logging.getLogger(__name__)
# On nodes that were lost meanwhile.
MAX_ORDERS = 3
# A list of millions of files takes a minute; after this its worker has died.
ACCEPTED_WITHIN = timedelta(minutes=10)


def continue_listing(version_id: int) -> None:
    """Does what is due for the version now."""
    order = _advance(version_id)
    if order is not None:
        _accept(version_id, order)


def advance_listings(now: datetime) -> None:
    """Does the same for all versions that wait for a node, or whose message was lost; what takes long by a
    message. An error in one does not affect the others."""
    waiting = DatasetVersion.objects.filter(~listing.by_hub(), state=ListingState.LISTING)
    for version_id in list(waiting.order_by("created_at").values_list("pk", flat=True)):
        try:
            order = _advance(version_id)
        except DatabaseError:
            raise
        except Exception:
            log.exception("Version %d of a dataset could not be ordered", version_id)
            continue
        if order is not None and _is_due(now, version_id):
            send_task_soon(TaskName.ADVANCE_LISTING, version_id)


def newest_order(version: DatasetVersion) -> DataOrder | None:
    """Returns the order with which a node lists the version now, or has; None before the first."""
    return version.orders.select_related("node").order_by("-created_at", "pk").first()


def no_node_reason(version: DatasetVersion) -> str:
    """Returns why no node can list the version now, with the remedy, as a sentence; "" if one can."""
    datastore = version.dataset.datastore
    if node_choices.reading_nodes(datastore):
        return ""
    nodes = node_choices.usable_nodes(datastore.workspace)
    if not nodes:
        return "There is no node that could: add one under Clusters."
    first = nodes[0]
    return f"No node can. {first.name}: {node_choices.reading_refusal(first, datastore)}"


def _advance(version_id: int) -> DataOrder | None:
    """Orders what is to be ordered. Returns the order whose list is to be taken over."""
    with transaction.atomic():
        versions = DatasetVersion.objects.select_for_update(of=("self",)).select_related(
            "dataset__datastore__workspace", "created_by"
        )
        due = versions.filter(~listing.by_hub(), pk=version_id, state=ListingState.LISTING)
        version = due.first()
        newest = newest_order(version) if version is not None else None
        if version is None or (newest is not None and not newest.is_finished):
            return None
        if newest is None:
            _order(version, 1)
        elif newest.state == OrderState.DONE:
            return newest
        elif newest.is_lost and newest.order_number < MAX_ORDERS:
            _order(version, newest.order_number + 1, last_node=newest.node_id)
        elif newest.is_lost:
            listing.fail(version, f"It was ordered {MAX_ORDERS} times without a result: {newest.reason}")
        else:
            listing.fail(version, f"{newest.node.name}: {newest.reason}")
        return None


def _order(version: DatasetVersion, number: int, *, last_node: int | None = None) -> None:
    nodes = node_choices.reading_nodes(version.dataset.datastore)
    # The one that was lost only if there is no other.
    node = next((node for node in nodes if node.pk != last_node), nodes[0] if nodes else None)
    if node is not None:
        data_lifecycle.order_list(version, node, number)


def _accept(version_id: int, order: DataOrder) -> None:
    # Of two workers, only the one that changes the row takes the list over.
    due = DatasetVersion.objects.filter(_overdue(timezone.now()), pk=version_id)
    if not due.filter(state=ListingState.LISTING).update(begun_at=timezone.now()):
        return
    version = DatasetVersion.objects.select_related("dataset__datastore").get(pk=version_id)
    try:
        accept_list(version, order.result["sha256"], is_file=order.result["is_file"])
    except BadList as error:
        listing.fail(version, f"{order.node.name} has brought no list: {error}. Refresh the dataset.")
    except Exception:
        log.exception("The list of version %d of a dataset could not be taken over", version.pk)
        listing.fail(version, listing.OWN_FAULT)


def _is_due(now: datetime, version_id: int) -> bool:
    return DatasetVersion.objects.filter(_overdue(now), pk=version_id).exists()


def _overdue(now: datetime) -> Q:
    return Q(begun_at=None) | Q(begun_at__lt=now - ACCEPTED_WITHIN)

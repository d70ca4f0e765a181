"""Tokens of nodes: shown once, stored as a hash, and valid until they are replaced or revoked."""

from __future__ import annotations

import re
from functools import partial

from django.db import transaction
from django.utils import timezone

from clusters import brokers, journal
from clusters.models import Cluster, Node
from live.publish import publish_on_commit
from live.topics import node_topic
from trainhub_launch.errors import SpecError
from workspaces import audit
from workspaces.authentication.token_text import digest, new_token
from workspaces.models import User

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,49}\Z")
PREFIX = "thn"


class EnrolmentError(SpecError):
    """A node cannot be enrolled with these values."""


@transaction.atomic
def enrol_node(cluster_name: str, node_name: str) -> tuple[Node, str]:
    """Creates the node (and its cluster), or gives an existing node a new token, which ends older ones.
    Returns the node and its token. Raises EnrolmentError."""
    check_name("cluster", cluster_name)
    check_name("name", node_name)
    cluster, _ = Cluster.objects.get_or_create(name=cluster_name)
    # A deleted cluster with a history is only hidden; a machine that joins makes it visible again.
    Cluster.objects.filter(pk=cluster.pk, deleted_at__isnull=False).update(deleted_at=None)
    token = new_token(PREFIX)
    node, is_new = Node.objects.select_for_update().get_or_create(
        name=node_name, defaults={"cluster": cluster, "token_digest": digest(token)}
    )
    if not is_new:
        if node.cluster_id != cluster.pk and node.leases.filter(released_at=None).exists():
            raise EnrolmentError(
                "cluster", f"{node_name} is busy in cluster {node.cluster}; let its runs end or cancel them"
            )
        node.cluster = cluster
        node.token_digest = digest(token)
        # A removed node returns as a new one. A node that only gets a new token stays drained.
        if node.removed_at is not None:
            node.drained_at = node.removed_at = None
        node.revoked_at = None
        node.save(update_fields=["cluster", "token_digest", "revoked_at", "removed_at", "drained_at"])
        # Its broker password is derived from the replaced token; removing the user also ends open
        # connections.
        _leave_broker(node)
    _announce(node)
    return node, token


def node_for_token(text: str) -> Node | None:
    """Returns the node that holds this token, or None for an unknown, replaced or revoked token."""
    if not text:
        return None
    return Node.objects.select_related("cluster").filter(token_digest=digest(text), revoked_at=None).first()


@transaction.atomic
def revoke_node(node: Node, by: User | str = "command line") -> None:
    """Revokes the node's token, so that the hub and the broker reject the node from now on. Its runs become
    lost after some time; its history stays."""
    node.revoked_at = timezone.now()
    node.save(update_fields=["revoked_at"])
    journal.add(node, "revoked", f"Revoked by {by}; the hub rejects its reports from now on.")
    audit.record(by, "node.revoked", node.name, cluster=node.cluster.name)
    _leave_broker(node)
    _announce(node)


def name_from_host(hostname: str) -> str:
    """Returns a valid node name for this host name, or "" if it contains no usable character."""
    return re.sub(r"[^a-z0-9-]+", "-", hostname.partition(".")[0].lower()).strip("-")[:50]


def check_name(field: str, name: str) -> None:
    if not NAME.match(name):
        rule = "use up to 50 letters, digits, '-' and '_', starting with a letter or digit"
        raise EnrolmentError(field, f"{name!r} is not a usable name; {rule}")


def _announce(node: Node) -> None:
    publish_on_commit(node_topic(node.pk), {"type": "node.changed", "node": node.name})


def _leave_broker(node: Node) -> None:
    # A network call, so it runs after the commit. If it fails, the periodic `repair_users` repeats it.
    transaction.on_commit(partial(brokers.remove_user, node.name))

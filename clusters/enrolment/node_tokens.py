"""Who is a node: a token shown once, stored hashed, until another one replaces it or it is revoked."""

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
from workspaces.models import User
from workspaces.tokens import digest, new_token

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,49}\Z")
PREFIX = "thn"


class EnrolmentError(SpecError):
    """A node cannot be enrolled as asked."""


@transaction.atomic
def enrol(cluster_name: str, node_name: str) -> tuple[Node, str]:
    """Make the node (and its cluster) or, where it exists, give it a new token; older tokens end."""
    check_name("cluster", cluster_name)
    check_name("name", node_name)
    cluster, _ = Cluster.objects.get_or_create(name=cluster_name)
    Cluster.objects.filter(pk=cluster.pk, deleted_at__isnull=False).update(deleted_at=None)
    token = new_token(PREFIX)
    node, made = Node.objects.select_for_update().get_or_create(
        name=node_name, defaults={"cluster": cluster, "token_digest": digest(token)}
    )
    if not made:
        if node.cluster_id != cluster.pk and node.leases.filter(released_at=None).exists():
            raise EnrolmentError(
                "cluster", f"{node_name} is busy in cluster {node.cluster}; let its runs end or cancel them"
            )
        node.cluster = cluster
        node.token_digest = digest(token)
        if node.removed_at is not None:
            node.drained_at = node.removed_at = None
        node.revoked_at = None
        node.save(update_fields=["cluster", "token_digest", "revoked_at", "removed_at", "drained_at"])
        _leave_broker(node)
    _announce(node)
    return node, token


def node_for_token(text: str) -> Node | None:
    """The node that holds this token; None for an unknown, replaced or revoked one."""
    if not text:
        return None
    return Node.objects.select_related("cluster").filter(token_digest=digest(text), revoked_at=None).first()


@transaction.atomic
def revoke(node: Node, by: User | str = "command line") -> None:
    """Refuse the node from now on, here and at the broker. What it runs becomes lost in time; its history
    stays."""
    node.revoked_at = timezone.now()
    node.save(update_fields=["revoked_at"])
    journal.add(node, "revoked", f"Revoked by {by}; the hub does not listen to it any more.")
    audit.record(by, "node.revoked", node.name, cluster=node.cluster.name)
    _leave_broker(node)
    _announce(node)


def name_from_host(hostname: str) -> str:
    """A usable name for the machine of this host name; empty where nothing of it is usable."""
    return re.sub(r"[^a-z0-9-]+", "-", hostname.partition(".")[0].lower()).strip("-")[:50]


def check_name(field: str, name: str) -> None:
    if not NAME.match(name):
        rule = "use up to 50 letters, digits, '-' and '_', starting with a letter or digit"
        raise EnrolmentError(field, f"{name!r} is not a usable name; {rule}")


def _announce(node: Node) -> None:
    publish_on_commit(node_topic(node.pk), {"type": "node.changed", "node": node.name})


def _leave_broker(node: Node) -> None:
    # Over the network, so not before the database has let go; should it fail, the periodic mending does it.
    transaction.on_commit(partial(brokers.remove_user, node.name))

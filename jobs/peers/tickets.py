"""The tickets with which nodes take the files of a dataset's version from each other.

A download has one for the hub, for its attempt, its node and its files. In exchange for that it gets short
ones for the other nodes (see trainhub_launch.data.peer_tickets). All are derived, and none is stored."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import time
from collections.abc import Mapping
from dataclasses import replace

from django.conf import settings

from clusters.models import Node
from datastores.swarms.models import PeerServer
from jobs.models import AttemptNode
from trainhub_launch.data.downloads import PEERS_PREFIX, DataDownload
from trainhub_launch.data.peer_tickets import PeerTicket, seal
from trainhub_launch.machine import PEERS

ADDRESS = "/api/v1/node/peers/"
PREFIX = "thp"
# They are renewed with each exchange, at least every few seconds, while the attempt goes on.
LIFE_S = 300
_TICKET = re.compile(
    rf"{PREFIX}_([0-9a-f]{{32}})_([0-9]{{1,9}})_([0-9]{{1,9}})_([0-9a-f]{{64}})_[A-Za-z0-9_-]{{43}}\Z"
)


def with_peers(
    part: AttemptNode, downloads: Mapping[str, DataDownload], hub_url: str
) -> dict[str, DataDownload]:
    """Returns the downloads of a part, with the address of ADDRESS where the node is to take the files from
    others, too, in a cluster with several nodes that do so."""
    if not any(download.can_share for download in downloads.values()) or not _has_peers(part.node):
        return dict(downloads)
    address = f"{hub_url.rstrip('/')}{ADDRESS}"
    return {
        name: replace(download, peers=address) if download.can_share else download
        for name, download in downloads.items()
    }


def ticket_values(part: AttemptNode) -> dict[str, str]:
    """Returns the tickets of a part, by their names among the values of its secrets."""
    if not _is_peer(part.node.capabilities):
        return {}
    downloads = map(DataDownload.from_json, part.attempt.downloads.values())
    return {
        f"{PEERS_PREFIX}{download.swarm}": hub_ticket(part, download.swarm)
        for download in downloads
        if download.can_share
    }


def hub_ticket(part: AttemptNode, swarm: str) -> str:
    """Returns what lets a download ask the hub about these files."""
    names = f"{part.attempt.run_id}_{part.attempt.number}_{part.node_id}_{swarm}"
    code = hmac.digest(_key("peers of attempts"), names.encode(), "sha256")
    return f"{PREFIX}_{names}_{base64.urlsafe_b64encode(code).decode().rstrip('=')}"


def part_of_ticket(text: str) -> tuple[AttemptNode, str] | None:
    """Returns the part whose ticket this is, and the name of the files; None if it is none, or the attempt is
    over."""
    match = _TICKET.match(text)
    if match is None:
        return None
    part = (
        AttemptNode.objects.select_related("attempt__run", "node__cluster")
        .filter(
            attempt__run_id=match[1],
            attempt__number=int(match[2]),
            node_id=int(match[3]),
            node__revoked_at=None,
            attempt__ended_at=None,
            settled_at=None,
        )
        .first()
    )
    if part is None or not hmac.compare_digest(text, hub_ticket(part, match[4])):
        return None
    return part, match[4]


def ticket_for_peer(part: AttemptNode, swarm: str, peer: Node) -> str:
    """Returns what opens these files at another node."""
    ticket = PeerTicket(
        swarm,
        part.attempt.run_id,
        part.attempt.number,
        part.node_id,
        # By the clock of that node.
        int(time.time() - peer.clock_offset_s) + LIFE_S,
    )
    return base64.b64encode(seal(ticket, ticket_key(peer.peer_server))).decode()


def ticket_key(server: PeerServer) -> bytes:
    """Returns the key of the tickets for a node, which has it, too."""
    return hmac.digest(_key("tickets of peers"), server.fingerprint.encode(), "sha256")


def _key(purpose: str) -> bytes:
    return hashlib.sha256(f"trainhub {purpose}\0{settings.SECRET_KEY}".encode()).digest()


def _has_peers(node: Node) -> bool:
    if not _is_peer(node.capabilities):
        return False
    others = Node.objects.filter(cluster=node.cluster_id, revoked_at=None).exclude(pk=node.pk)
    return any(_is_peer(capabilities) for capabilities in others.values_list("capabilities", flat=True))


def _is_peer(capabilities: str) -> bool:
    return PEERS in capabilities.split()

"""Enrolment of machines as nodes: an operator creates a join token, and the machine exchanges it once for a
token of its own."""

from __future__ import annotations

import hashlib
import ssl
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from clusters import journal
from clusters.enrolment.node_tokens import EnrolmentError, check_name, enrol_node, name_from_host
from clusters.models import Cluster, JoinToken, Node, ProvidedMachine
from clusters.node_reports.heartbeat import status
from clusters.states import NodeStatus
from workspaces import audit
from workspaces.authentication.token_text import digest, new_token
from workspaces.models import User

PREFIX = "thj"
FIRST_CLUSTER = "local"
LIFETIME = timedelta(hours=24)
# Nodes that nobody misses are replaced by a machine that joins under their name. Others only on request, and
# never one that still reports.
REPLACEABLE = {NodeStatus.REVOKED, NodeStatus.LOST}
REPLACEABLE_BY_REQUEST = REPLACEABLE | {NodeStatus.UNREACHABLE, NodeStatus.NEW}


class TokenNotUsable(EnrolmentError):
    """The join token is unknown, used or expired."""


class TokenUnknown(TokenNotUsable):
    """The text is not a join token of this hub."""


class NameInUse(EnrolmentError):
    """A node of this name exists and may not be replaced."""


@dataclass(frozen=True)
class JoinResult:
    node: Node
    token: str


def invite(
    cluster: str, name: str, by: User | None, *, monitor_only: bool = False, actor: str = "command line"
) -> tuple[JoinToken, str]:
    """Creates a join token and returns it with its text, which is not stored. `name` empty: the host name of
    the machine. `monitor_only`: the node takes no runs. `actor`: name for the audit log if `by` is None."""
    check_name("cluster", cluster)
    if Cluster.objects.filter(name=cluster).exclude(slurm=None).exists():
        raise EnrolmentError(
            "cluster", f"{cluster} is a partition of a Slurm, which has the nodes; choose another cluster"
        )
    if name:
        check_name("name", name)
    text = new_token(PREFIX)
    invitation = JoinToken.objects.create(
        cluster=cluster,
        name=name,
        digest=digest(text),
        created_by=by,
        expires_at=timezone.now() + LIFETIME,
        monitor_only=monitor_only,
    )
    purpose: dict[str, Any] = {"monitor_only": True} if monitor_only else {}
    audit.record(by or actor, "node.invited", name or "any name", cluster=cluster, **purpose)
    # The machine learns the hub's authority with its token, over a channel that the operator trusts. It can
    # then verify its first connection, which nobody on the network can redirect.
    fingerprint = ca_fingerprint()
    return invitation, f"{text}.{fingerprint}" if fingerprint else text


@transaction.atomic
def join(text: str, name: str, hostname: str, *, replace: bool = False, address: str = "") -> JoinResult:
    """Enrols the machine as a node. Raises TokenNotUsable, NameInUse or EnrolmentError, and leaves the token
    unchanged then."""
    token = _usable_token(text)
    node_name = _name(token, name, hostname)
    existing = Node.objects.filter(name=node_name).first()
    if existing is not None:
        _check_replaceable(existing, replace)
    node, node_token = enrol_node(token.cluster, node_name)
    if node.monitor_only != token.monitor_only:
        node.monitor_only = token.monitor_only
        node.save(update_fields=["monitor_only"])
    token.used_at, token.node = timezone.now(), node
    token.save(update_fields=["used_at", "node"])
    inviter = _inviter(token)
    action = "joined" if existing is None else "took the node's place in"
    message = (
        f"The machine {hostname or 'without a name'} at {address or 'an unknown address'} {action} "
        f"cluster {token.cluster}."
    )
    monitor_note = " It is monitored only and takes no runs." if node.monitor_only else ""
    journal.add(node, "joined", f"{message} Invited by {inviter}.{monitor_note}")
    audit.record(
        f"node {node_name}",
        "node.joined",
        node_name,
        cluster=token.cluster,
        hostname=hostname,
        address=address,
        invited_by=inviter,
    )
    return JoinResult(node, node_token)


def ca_pem() -> str:
    """Returns the certificate of the hub's own authority in PEM; empty if it has none."""
    return Path(settings.HUB_CA).read_text() if settings.HUB_CA else ""


def ca_fingerprint() -> str:
    """Returns the SHA-256 of the certificate of the hub's own authority (in DER form) as hexadecimal digits,
    which nodes pin; empty if the hub has none."""
    pem = ca_pem()
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest() if pem else ""


def cluster_names() -> list[str]:
    """Returns the clusters that machines can join."""
    clusters = Cluster.objects.filter(deleted_at=None, slurm=None)
    return list(clusters.order_by("name").values_list("name", flat=True))


def default_cluster_name() -> str:
    """Returns the cluster to which the next machine most probably belongs: the only one, else the one that a
    machine joined last, else the first by name; `local` if there is none yet, as `make up` names it."""
    names = cluster_names()
    present = Node.objects.filter(cluster__deleted_at=None, cluster__slurm=None, revoked_at=None)
    latest = present.select_related("cluster").last()
    if len(names) > 1 and latest is not None:
        return latest.cluster.name
    return names[0] if names else FIRST_CLUSTER


def is_join_token(text: str) -> bool:
    """Returns whether a join token of this text was created here. It takes no lock, so guesses delay no
    other request."""
    return JoinToken.objects.filter(digest=digest(_secret(text))).exists()


def _secret(text: str) -> str:
    """Returns the secret part of a join token, without the fingerprint of the hub's authority."""
    return text.strip().partition(".")[0]


def _inviter(token: JoinToken) -> str:
    if token.created_by is not None:
        return token.created_by.get_username()
    is_provided = ProvidedMachine.objects.filter(name=token.name, cluster__name=token.cluster).exists()
    return f"the provider of cluster {token.cluster}" if is_provided else "command line"


def _usable_token(text: str) -> JoinToken:
    # The row stays locked until `join` has committed: of two machines with the same token, the second sees it
    # used.
    tokens = JoinToken.objects.select_for_update(of=("self",)).select_related("node", "created_by")
    token = tokens.filter(digest=digest(_secret(text))).first()
    remedy = "create a new one on the hub, under Clusters or with manage.py node token"
    if token is None:
        raise TokenUnknown("token", f"is not known here; copy it again or {remedy}")
    if token.used_at is not None:
        user = f" by {token.node}" if token.node else ""
        raise TokenNotUsable("token", f"was used already{user} and works only once; {remedy}")
    if token.expires_at <= timezone.now():
        raise TokenNotUsable(
            "token", f"has expired after {LIFETIME.total_seconds() / 3600:.0f} hours; {remedy}"
        )
    return token


def _name(token: JoinToken, name: str, hostname: str) -> str:
    if token.name and name and name != token.name:
        raise EnrolmentError(
            "name", f"this token is for {token.name}, not for {name!r}; leave the name out, or use another"
        )
    node_name = token.name or name or name_from_host(hostname)
    check_name("name", node_name)
    return node_name


def _check_replaceable(node: Node, replace: bool) -> None:
    node_status = status(node, timezone.now())
    if node_status in REPLACEABLE or (replace and node_status in REPLACEABLE_BY_REQUEST):
        return
    if node_status is NodeStatus.READY:
        remedy = "stop the agent there first, or revoke it" if replace else "choose another name with --name"
        raise NameInUse("name", f"{node.name} is joined already and reports to the hub; {remedy}")
    raise NameInUse(
        "name",
        (
            f"{node.name} is joined already, and {node_status}; choose another name with --name, or take "
            "its place "
            "with --replace"
        ),
    )

"""How another machine becomes a node: an operator invites, the machine trades the join token for one of its
own, once."""

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
from clusters.enrolment.node_tokens import EnrolmentError, check_name, enrol, name_from_host
from clusters.models import Cluster, JoinToken, Node, ProvidedMachine
from clusters.node_reports.heartbeat import status
from clusters.states import NodeStatus
from workspaces import audit
from workspaces.models import User
from workspaces.tokens import digest, new_token

PREFIX = "thj"
LIVES = timedelta(hours=24)
GIVES_WAY = {NodeStatus.REVOKED, NodeStatus.LOST}
GIVES_WAY_IF_ASKED = GIVES_WAY | {NodeStatus.UNREACHABLE, NodeStatus.NEW}


class TokenNotUsable(EnrolmentError):
    """A join token that opens nothing (any more)."""


class TokenUnknown(TokenNotUsable):
    """Not a join token of this hub: mistyped, or guessed."""


class NameTaken(EnrolmentError):
    """A node of that name is there and may not be replaced."""


@dataclass(frozen=True)
class JoinResult:
    node: Node
    token: str


def invite(
    cluster: str, name: str, by: User | None, *, monitor_only: bool = False, actor: str = "command line"
) -> tuple[JoinToken, str]:
    """A new join token and its text, which exists nowhere else. `name` empty: the machine names itself.
    `monitor_only`: the machine is to be watched, and takes no runs. `actor`: who invites where it is
    nobody."""
    check_name("cluster", cluster)
    if name:
        check_name("name", name)
    text = new_token(PREFIX)
    made = JoinToken.objects.create(
        cluster=cluster,
        name=name,
        digest=digest(text),
        created_by=by,
        expires_at=timezone.now() + LIVES,
        monitor_only=monitor_only,
    )
    purpose: dict[str, Any] = {"monitor_only": True} if monitor_only else {}
    audit.record(by or actor, "node.invited", name or "any name", cluster=cluster, **purpose)
    fingerprint = ca_fingerprint()
    return made, f"{text}.{fingerprint}" if fingerprint else text


@transaction.atomic
def join(text: str, name: str, hostname: str, *, replace: bool = False, address: str = "") -> JoinResult:
    """Make the machine a node. Raises TokenSpent, NameTaken and EnrolmentError; then the token stays as it
    was."""
    token = _usable(text)
    wanted = _name(token, name, hostname)
    known = Node.objects.filter(name=wanted).first()
    if known is not None:
        _give_way(known, replace)
    node, own = enrol(token.cluster, wanted)
    if node.monitor_only != token.monitor_only:
        node.monitor_only = token.monitor_only
        node.save(update_fields=["monitor_only"])
    token.used_at, token.node = timezone.now(), node
    token.save(update_fields=["used_at", "node"])
    inviter = _inviter(token)
    did = "joined" if known is None else "took the node's place in"
    message = (
        f"The machine {hostname or 'without a name'} at {address or 'an unknown address'} {did} "
        f"cluster {token.cluster}."
    )
    watched = " It is only watched, and takes no runs." if node.monitor_only else ""
    journal.add(node, "joined", f"{message} Invited by {inviter}.{watched}")
    audit.record(
        f"node {wanted}",
        "node.joined",
        wanted,
        cluster=token.cluster,
        hostname=hostname,
        address=address,
        invited_by=inviter,
    )
    return JoinResult(node, own)


def ca_pem() -> str:
    """The certificate of the hub's own authority; empty where it has none."""
    return Path(settings.HUB_CA).read_text() if settings.HUB_CA else ""


def ca_fingerprint() -> str:
    """SHA-256 of its DER form in hexadecimal digits, what a node pins; empty where there is none."""
    pem = ca_pem()
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest() if pem else ""


def cluster_names() -> list[str]:
    return list(Cluster.objects.filter(deleted_at=None).order_by("name").values_list("name", flat=True))


def is_known(text: str) -> bool:
    """Whether a join token of this text was ever made here. Takes no lock, so that guesses delay nobody."""
    return JoinToken.objects.filter(digest=digest(_secret(text))).exists()


def _secret(text: str) -> str:
    """The part of a join token that is secret; behind it stands the fingerprint of the hub's authority."""
    return text.strip().partition(".")[0]


def _inviter(token: JoinToken) -> str:
    if token.created_by is not None:
        return token.created_by.get_username()
    is_made = ProvidedMachine.objects.filter(name=token.name, cluster__name=token.cluster).exists()
    return f"the provider of cluster {token.cluster}" if is_made else "command line"


def _usable(text: str) -> JoinToken:
    tokens = JoinToken.objects.select_for_update(of=("self",)).select_related("node", "created_by")
    token = tokens.filter(digest=digest(_secret(text))).first()
    another = "make a new one on the hub, under Clusters or by manage.py node token"
    if token is None:
        raise TokenUnknown("token", f"is not known here; copy it again, or {another}")
    if token.used_at is not None:
        who = f" by {token.node}" if token.node else ""
        raise TokenNotUsable("token", f"was used already{who}, and works once; {another}")
    if token.expires_at <= timezone.now():
        raise TokenNotUsable("token", f"has expired after {LIVES.total_seconds() / 3600:.0f} hours; {another}")
    return token


def _name(token: JoinToken, name: str, hostname: str) -> str:
    if token.name and name and name != token.name:
        raise EnrolmentError(
            "name", f"this token is for {token.name}, not for {name!r}; leave the name out, or use another"
        )
    wanted = token.name or name or name_from_host(hostname)
    check_name("name", wanted)
    return wanted


def _give_way(node: Node, replace: bool) -> None:
    stands = status(node, timezone.now())
    if stands in GIVES_WAY or (replace and stands in GIVES_WAY_IF_ASKED):
        return
    if stands is NodeStatus.READY:
        remedy = "stop the agent there first, or revoke it" if replace else "choose another name with --name"
        raise NameTaken("name", f"{node.name} is joined already and reports to the hub; {remedy}")
    raise NameTaken(
        "name",
        (
            f"{node.name} is joined already, and {stands}; choose another name with --name, or take "
            "its place "
            "with --replace"
        ),
    )

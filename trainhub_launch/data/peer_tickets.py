"""The ticket with which one node takes blocks of a dataset's files from another.

The hub makes it with a key that it shares with the node that serves. So that node checks it without asking,
and nobody else can make one."""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import NamedTuple

_FIELDS = struct.Struct(">32s16sIIQ")
TICKET_BYTES = _FIELDS.size + hashlib.sha256().digest_size


class PeerTicket(NamedTuple):
    """`swarm`: the files, see DataDownload.swarm; `run`, `attempt` and `node`: for which attempt on which
    node; `expires_at`: in seconds since 1970, by the clock of the node that serves."""

    swarm: str
    run: str
    attempt: int
    node: int
    expires_at: int


def seal(ticket: PeerTicket, key: bytes) -> bytes:
    """Returns the ticket as it is sent."""
    fields = _FIELDS.pack(
        bytes.fromhex(ticket.swarm),
        bytes.fromhex(ticket.run),
        ticket.attempt,
        ticket.node,
        ticket.expires_at,
    )
    return fields + hmac.digest(key, fields, "sha256")


def open_ticket(data: bytes, key: bytes, now: float) -> PeerTicket | None:
    """Returns what a ticket says; None unless it was made with this key and has not expired."""
    if len(data) != TICKET_BYTES:
        return None
    fields, code = data[: _FIELDS.size], data[_FIELDS.size :]
    if not hmac.compare_digest(code, hmac.digest(key, fields, "sha256")):
        return None
    swarm, run, attempt, node, expires_at = _FIELDS.unpack(fields)
    if expires_at <= now:
        return None
    return PeerTicket(swarm.hex(), run.hex(), attempt, node, expires_at)

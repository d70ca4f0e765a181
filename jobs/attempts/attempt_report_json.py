"""An attempt's fact as it is kept: readable, by the hub's clock, and as JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from jobs.attempts import outcomes
from jobs.models import AttemptNode
from jobs.redaction import mask
from jobs.tokens import token_of
from trainhub_launch.report import AttemptFact, DaemonCall, MemberFact

MAX_UNIX_S = 4e9
"""Unix seconds (the year 2096) beyond which a number is no time of any clock."""


def normalize(fact: AttemptFact, offset_s: float) -> AttemptFact:
    """By the hub's clock, which is `offset_s` ahead of the node's; without the attempt's token, should a tool
    have printed it into an error."""
    secrets = (token_of(fact.run, fact.attempt),)
    times = {phase: _to_hub_clock(at, offset_s) for phase, at in fact.phase_at.items()}
    return dataclasses.replace(
        fact,
        phase_at={phase: at for phase, at in times.items() if at is not None},
        members=tuple(
            dataclasses.replace(
                member,
                started_at=_to_hub_clock(member.started_at, offset_s),
                ended_at=_to_hub_clock(member.ended_at, offset_s),
            )
            for member in fact.members
        ),
        error=_cleaned_text(fact.error, secrets)[:4000],
        warnings=tuple(_cleaned_text(item, secrets)[:1000] for item in fact.warnings),
    )


def to_json(fact: AttemptFact) -> dict[str, Any]:
    """Outputs have rows of their own."""
    text = json.dumps(dataclasses.asdict(fact) | {"outputs": []})
    # PostgreSQL keeps no NUL, in JSON neither.
    return dict(json.loads(text.replace("\\u0000", "\\ufffd")))


def from_json(stored: Mapping[str, Any]) -> AttemptFact:
    return AttemptFact(
        **{
            **stored,
            "members": tuple(MemberFact(**item) for item in stored["members"]),
            "warnings": tuple(stored["warnings"]),
            "ports": tuple(stored.get("ports", ())),
            "daemons": tuple(
                DaemonCall(item["host"], tuple(item["argv"])) for item in stored.get("daemons", ())
            ),
        }
    )


def load_part(part: AttemptNode, decides: Mapping[int, bool]) -> outcomes.NodePart:
    """A stored part as `outcomes` reads it."""
    fact = from_json(part.fact) if part.fact else None
    return outcomes.NodePart(node=part.node.name, node_rank=part.node_rank, fact=fact, decides=decides)


def _cleaned_text(text: str, secrets: tuple[str, ...]) -> str:
    """What a program printed may hold anything."""
    return mask(text, secrets).replace("\0", "\ufffd")


def _to_hub_clock(seconds: float | None, offset_s: float) -> float | None:
    """None for what no clock shows."""
    if seconds is None or not 0 <= seconds + offset_s < MAX_UNIX_S:
        return None
    return seconds + offset_s

"""Converts a node's report about an attempt to the JSON that `AttemptNode.fact` stores, and back."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from jobs import outcomes
from jobs.models import AttemptNode
from jobs.redaction import mask
from jobs.tokens import attempt_token
from trainhub_launch.json_types import JsonObject
from trainhub_launch.report import AttemptFact, DaemonCall, MemberFact
from trainhub_launch.states import Phase, RankState

# Times beyond this Unix time (the year 2096) are treated as invalid.
MAX_UNIX_S = 4e9


def normalize(fact: AttemptFact, offset_s: float) -> AttemptFact:
    """Returns the report with its times converted to the hub's clock, which is `offset_s` seconds ahead of
    the node's, and with the attempt's token masked in error and warnings."""
    secrets = (attempt_token(fact.run, fact.attempt),)
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
        # Of what a node sends, only so much is stored: the texts may quote a script's whole output.
        warnings=tuple(_cleaned_text(item, secrets)[:1000] for item in fact.warnings),
    )


def to_json(fact: AttemptFact) -> JsonObject:
    """Returns the report as JSON without its outputs, which are stored as Artifact rows."""
    text = json.dumps(dataclasses.asdict(fact) | {"outputs": []})
    # PostgreSQL cannot store NUL characters, not even inside JSON.
    return dict(json.loads(text.replace("\\u0000", "\\ufffd")))


def from_json(stored: Mapping[str, Any]) -> AttemptFact:
    return AttemptFact(
        **{
            **stored,
            "phase": Phase(stored["phase"]),
            "members": tuple(
                MemberFact(**{**item, "state": RankState(item["state"])}) for item in stored["members"]
            ),
            "warnings": tuple(stored["warnings"]),
            # Fields that nodes or hubs of earlier versions did not write.
            "ports": tuple(stored.get("ports", ())),
            "changed_inputs": tuple(stored.get("changed_inputs", ())),
            "daemons": tuple(
                DaemonCall(item["host"], tuple(item["argv"])) for item in stored.get("daemons", ())
            ),
        }
    )


def load_part(part: AttemptNode, decides: Mapping[int, bool]) -> outcomes.NodePart:
    """Returns a stored part as the value that `outcomes` works on."""
    fact = from_json(part.fact) if part.fact else None
    return outcomes.NodePart(node=part.node.name, node_rank=part.node_rank, fact=fact, decides=decides)


def _cleaned_text(text: str, secrets: tuple[str, ...]) -> str:
    """Returns the text without secrets and without NUL, which PostgreSQL cannot store."""
    return mask(text, secrets).replace("\0", "\ufffd")


def _to_hub_clock(seconds: float | None, offset_s: float) -> float | None:
    """Returns the time by the hub's clock, or None for a missing or impossible time."""
    if seconds is None or not 0 <= seconds + offset_s < MAX_UNIX_S:
        return None
    return seconds + offset_s

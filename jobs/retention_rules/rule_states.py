"""What pages and the API show of the rules of a workspace."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from jobs.models import RuleInForce
from jobs.retention_rules.rules import KEEP, HubRule, Rule, hub_rules, own_rules
from jobs.states import DataKind
from workspaces.models import Workspace


@dataclass(frozen=True)
class RuleState:
    """`own`: what owners have set, None: the hub's rule holds. `in_force`: by what data is removed now.
    `waiting`: a stricter rule that holds from `begins_at` on, None: there is none. `hub`: what operators have
    set."""

    kind: DataKind
    own: Rule | None
    in_force: Rule
    waiting: Rule | None
    begins_at: datetime | None
    hub: HubRule


def rule_states(workspace: Workspace) -> list[RuleState]:
    """Returns where each kind stands."""
    rows = {row.kind: row for row in RuleInForce.objects.filter(workspace=workspace)}
    own, hub = own_rules(workspace), hub_rules()
    return [_state(kind, own.get(kind), rows.get(kind), hub[kind]) for kind in DataKind]


def _state(kind: DataKind, own: Rule | None, row: RuleInForce | None, hub: HubRule) -> RuleState:
    if row is None:
        return RuleState(kind, own, KEEP, None, None, hub)
    waits = row.next_at is not None
    return RuleState(
        kind,
        own,
        Rule(row.days, row.only_unsuccessful),
        Rule(row.next_days, row.next_only_unsuccessful) if waits else None,
        row.next_at,
        hub,
    )

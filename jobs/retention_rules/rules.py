"""What a retention rule says, and which one holds for a workspace after the limits of the hub."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jobs.retention_rules.models import RetentionRule, RuleInForce
from jobs.states import DataKind
from workspaces.models import Workspace

# A century; the database has room for more.
MAX_DAYS = 36_500


@dataclass(frozen=True)
class Rule:
    """`days`: removed of runs that ended so many days ago; None: never. `only_unsuccessful`: only of runs
    that failed or were canceled."""

    days: int | None = None
    only_unsuccessful: bool = False

    def removes_more_than(self, other: Rule) -> bool:
        """Returns whether there can be a run of which this rule removes something that the other one
        keeps."""
        if self.days is None:
            return False
        is_earlier = other.days is None or self.days < other.days
        return is_earlier or (other.only_unsuccessful and not self.only_unsuccessful)

    @property
    def words(self) -> str:
        """What happens to the data, after its name."""
        if self.days is None:
            return "kept for ever"
        of = " of failed and canceled runs" if self.only_unsuccessful else ""
        days = f"{self.days} day{'' if self.days == 1 else 's'}"
        return f"removed {days} after the end{of or ' of a run'}"


KEEP = Rule()


@dataclass(frozen=True)
class HubRule:
    """What operators have set for one kind: the rule for workspaces without one of their own, and the least
    and most days that those of owners may say (None: any)."""

    rule: Rule = KEEP
    least_days: int | None = None
    most_days: int | None = None

    def limit(self, own: Rule | None) -> Rule:
        """Returns the rule that holds for a workspace with the rule `own` (None: it has none)."""
        rule = own or self.rule
        if self.most_days is not None and (rule.days is None or rule.only_unsuccessful):
            # Nothing may be kept longer, whatever the end of its run was.
            rule = Rule(self.most_days)
        if rule.days is None:
            return KEEP
        days = rule.days if self.most_days is None else min(rule.days, self.most_days)
        return Rule(max(days, self.least_days or 0), rule.only_unsuccessful)


def hub_rules() -> dict[DataKind, HubRule]:
    """Returns what operators have set for each kind."""
    rules = dict.fromkeys(DataKind, HubRule())
    for row in RetentionRule.objects.filter(workspace=None):
        rule = Rule(row.days, row.only_unsuccessful)
        rules[DataKind(row.kind)] = HubRule(rule, row.least_days, row.most_days)
    return rules


def own_rules(workspace: Workspace) -> dict[DataKind, Rule]:
    """Returns what the workspace's owners have set; kinds without a rule of their own are left out."""
    rows = RetentionRule.objects.filter(workspace=workspace)
    return {DataKind(row.kind): Rule(row.days, row.only_unsuccessful) for row in rows}


def holding_rules(
    workspace: Workspace,
    changes: Mapping[DataKind, Rule | None] | None = None,
    hub: Mapping[DataKind, HubRule] | None = None,
) -> dict[DataKind, Rule]:
    """Returns the rule that holds for each kind, with the hub's limits. `changes`: as if owners had set these
    (None: the hub's); `hub`: as if operators had set those."""
    own: dict[DataKind, Rule | None] = {**own_rules(workspace), **(changes or {})}
    return {kind: rule.limit(own.get(kind)) for kind, rule in (hub or hub_rules()).items()}


def rules_in_force(workspace: Workspace) -> dict[DataKind, Rule]:
    """Returns by which rule of each kind the worker removes data now."""
    rules = dict.fromkeys(DataKind, KEEP)
    for row in RuleInForce.objects.filter(workspace=workspace):
        rules[DataKind(row.kind)] = Rule(row.days, row.only_unsuccessful)
    return rules

"""Changes rules. A rule that removes more than the one in force waits a day before it holds, and the owners
of the workspace are told; one that removes less holds at once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from jobs.models import RetentionRule, RuleInForce
from jobs.retention_rules import confirmations, notices
from jobs.retention_rules.rules import (
    MAX_DAYS,
    HubRule,
    Rule,
    holding_rules,
    hub_rules,
    rules_in_force,
)
from jobs.states import DataKind
from jobs.task_messages import retention_soon
from trainhub_launch.errors import SpecError
from workspaces import audit
from workspaces.models import User, Workspace

# How long a stricter rule waits, so that people can cancel it or pin what they need.
GRACE = timedelta(hours=24)
# What owners set: None takes the hub's rule.
OwnChoices = Mapping[DataKind, Rule | None]
HubChoices = Mapping[DataKind, HubRule]


def check_own(choices: OwnChoices) -> None:
    """Raises SpecError, with the field, for rules that owners may not set."""
    hub = hub_rules()
    for kind, rule in choices.items():
        if rule is None or rule.days is None:
            continue
        least, most = hub[kind].least_days, hub[kind].most_days
        _check_days(f"{kind}.days", rule.days)
        if least is not None and rule.days < least:
            raise SpecError(f"{kind}.days", f"must be at least {least}, the least that operators allow here")
        if most is not None and rule.days > most:
            raise SpecError(f"{kind}.days", f"must be at most {most}, the most that operators allow here")
        if most is not None and rule.only_unsuccessful:
            raise SpecError(
                f"{kind}.only_unsuccessful",
                f"must be off: operators allow nothing to be kept longer than {most} days here",
            )


def check_hub(choices: HubChoices) -> None:
    """Raises SpecError, with the field, for rules that operators may not set."""
    for kind, hub in choices.items():
        values = (("days", hub.rule.days), ("least_days", hub.least_days), ("most_days", hub.most_days))
        for name, value in values:
            if value is not None:
                _check_days(f"{kind}.{name}", value)
        if hub.least_days is not None and hub.most_days is not None and hub.least_days > hub.most_days:
            raise SpecError(f"{kind}.least_days", f"must be at most {hub.most_days}, the most days")
        if hub.limit(None) != hub.rule:
            raise SpecError(f"{kind}.days", "must keep to the least and the most days")


def _check_days(field: str, days: int) -> None:
    if not 1 <= days <= MAX_DAYS:
        raise SpecError(field, f"must be a whole number of days from 1 to {MAX_DAYS}")


def stricter_own(workspace: Workspace, choices: OwnChoices) -> dict[DataKind, Rule]:
    """Returns the rules that would hold with these choices and remove more than those in force."""
    return _stricter(workspace, holding_rules(workspace, choices))


def stricter_for_all(choices: HubChoices) -> list[tuple[Workspace, dict[DataKind, Rule]]]:
    """Returns the same for each workspace, for choices of operators."""
    hub = {**hub_rules(), **choices}
    return [
        (workspace, rules)
        for workspace in Workspace.objects.filter(archived_at=None).order_by("pk")
        if (rules := _stricter(workspace, holding_rules(workspace, hub=hub)))
    ]


def set_own(workspace: Workspace, choices: OwnChoices, who: User, confirmation: str = "") -> None:
    """Sets rules of the workspace. `confirmation`: as its preview gave it, needed if one of them removes more
    than the rule in force. Raises SpecError with the field, and then changes nothing."""
    check_own(choices)
    with transaction.atomic():
        _lock(workspace)
        if stricter_own(workspace, choices):
            confirmations.check(confirmation, confirmations.subject_of(workspace, choices))
        for kind, rule in choices.items():
            _store(workspace, kind, None if rule is None else HubRule(rule), who)
        words = {kind.value: "the hub's" if rule is None else rule.words for kind, rule in choices.items()}
        audit.record(who, "retention.changed", f"workspace {workspace.slug}", workspace, **words)
        _apply(workspace, timezone.now())
    retention_soon()


def set_for_all(choices: HubChoices, who: User, confirmation: str = "") -> None:
    """Sets rules for all workspaces, for operators. As `set_own`."""
    check_hub(choices)
    with transaction.atomic():
        if stricter_for_all(choices):
            confirmations.check(confirmation, confirmations.subject_of(None, choices))
        for kind, hub in choices.items():
            _store(None, kind, hub, who)
        words = {
            kind.value: f"{hub.rule.words}, at least {hub.least_days}, at most {hub.most_days}"
            for kind, hub in choices.items()
        }
        audit.record(who, "retention.changed", "all workspaces", None, **words)
    # Each in a transaction of its own: a hub may have hundreds.
    for workspace in Workspace.objects.filter(archived_at=None).order_by("pk"):
        apply_rules(workspace, timezone.now())
    retention_soon()


def cancel_waiting(workspace: Workspace, who: User) -> None:
    """Sets the rules in force again for each kind for which a stricter one waits. Raises SpecError if there
    is none, or if operators do not let owners keep what it removes."""
    with transaction.atomic():
        _lock(workspace)
        waiting = RuleInForce.objects.filter(workspace=workspace).exclude(next_at=None)
        before = rules_in_force(workspace)
        choices = {DataKind(row.kind): before[DataKind(row.kind)] for row in waiting}
        if not choices:
            raise SpecError("rules", "there is no stricter rule that waits, so there is nothing to cancel")
        for kind, rule in choices.items():
            if hub_rules()[kind].limit(rule) != rule:
                raise SpecError(
                    f"{kind}.days",
                    "is a limit that operators have set for all workspaces; ask them, or pin the runs that "
                    "you need",
                )
            _store(workspace, kind, HubRule(rule), who)
        words = {kind.value: rule.words for kind, rule in choices.items()}
        audit.record(who, "retention.canceled", f"workspace {workspace.slug}", workspace, **words)
        _apply(workspace, timezone.now())


def apply_rules(workspace: Workspace, now: datetime) -> None:
    """Puts in force what holds for the workspace: at once what removes less, after the grace what removes
    more. May be repeated."""
    with transaction.atomic():
        _lock(workspace)
        _apply(workspace, now)


def _apply(workspace: Workspace, now: datetime) -> None:
    rows = {row.kind: row for row in RuleInForce.objects.filter(workspace=workspace)}
    announced = []
    for kind, rule in holding_rules(workspace).items():
        row = rows.get(kind) or RuleInForce(workspace=workspace, kind=kind)
        in_force, waiting = Rule(row.days, row.only_unsuccessful), _waiting(row)
        if rule == in_force and waiting is None:
            continue
        if rule.removes_more_than(in_force) and waiting != rule:
            row.next_days, row.next_only_unsuccessful = rule.days, rule.only_unsuccessful
            row.next_at = now + GRACE
            announced.append(row)
        elif row.next_at is None or waiting != rule or row.next_at <= now:
            row.days, row.only_unsuccessful = rule.days, rule.only_unsuccessful
            row.next_days, row.next_only_unsuccessful, row.next_at = None, False, None
        row.save()
    if announced:
        notices.announce(workspace, announced, now)


def _waiting(row: RuleInForce) -> Rule | None:
    return None if row.next_at is None else Rule(row.next_days, row.next_only_unsuccessful)


def _stricter(workspace: Workspace, holding: Mapping[DataKind, Rule]) -> dict[DataKind, Rule]:
    before = rules_in_force(workspace)
    return {kind: rule for kind, rule in holding.items() if rule.removes_more_than(before[kind])}


def _store(workspace: Workspace | None, kind: DataKind, choice: HubRule | None, who: User) -> None:
    rows = RetentionRule.objects.filter(workspace=workspace, kind=kind)
    if choice is None or (workspace is None and choice == HubRule()):
        rows.delete()
        return
    RetentionRule.objects.update_or_create(
        workspace=workspace,
        kind=kind,
        defaults={
            "days": choice.rule.days,
            "only_unsuccessful": choice.rule.only_unsuccessful and choice.rule.days is not None,
            "least_days": choice.least_days,
            "most_days": choice.most_days,
            "changed_by": who.get_username(),
            "changed_at": timezone.now(),
        },
    )


def _lock(workspace: Workspace) -> None:
    Workspace.objects.select_for_update(no_key=True).get(pk=workspace.pk)

"""What rules would remove now, and what they would keep although it is old enough, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Count, Max, Min
from django.utils import timezone

from jobs.models import Run
from jobs.querysets import RunQuerySet
from jobs.retention_rules import confirmations, contents, rule_changes
from jobs.retention_rules.due_runs import concerned_runs, due_runs
from jobs.retention_rules.protections import PROTECTIONS
from jobs.retention_rules.rule_changes import GRACE, HubChoices, OwnChoices
from jobs.retention_rules.rules import Rule, holding_rules
from jobs.states import DataKind
from workspaces.models import Workspace

# Runs that are named, the oldest ones, of what is removed and of each reason to keep.
MAX_LISTED, MAX_LISTED_EACH = 100, 10


@dataclass(frozen=True)
class KeepReason:
    """How many runs are kept for one reason: `key` for programs, `words` for people. `listed`: some."""

    key: str
    words: str
    count: int
    listed: Sequence[Run]


@dataclass(frozen=True)
class KindPreview:
    """What the `rule` would remove now: of how many runs, at most how many bytes (files that others name,
    too, free nothing), when the first and the last of them ended, and the oldest ones. `reasons`: why
    others are kept; a run may have several, and `keep_count` counts it once."""

    kind: DataKind
    workspace: Workspace
    rule: Rule
    count: int
    size_bytes: int
    oldest: datetime | None
    newest: datetime | None
    listed: Sequence[Run]
    reasons: Sequence[KeepReason]
    keep_count: int


@dataclass(frozen=True)
class RulesPreview:
    """`confirmation`: with it, exactly these rules may be set within an hour. `begins_at`: when the first
    data would be removed; None: at once, because nothing removes more than now."""

    confirmation: str
    begins_at: datetime | None
    kinds: Sequence[KindPreview] = field(default_factory=tuple)


def preview_own(workspace: Workspace, choices: OwnChoices, now: datetime | None = None) -> RulesPreview:
    """Previews rules of a workspace. Raises SpecError with the field."""
    rule_changes.check_own(choices)
    moment = now or timezone.now()
    rules = holding_rules(workspace, choices)
    return RulesPreview(
        confirmations.sign(confirmations.subject_of(workspace, choices)),
        moment + GRACE if rule_changes.stricter_own(workspace, choices) else None,
        _removing(workspace, {kind: rules[kind] for kind in DataKind if kind in choices}, moment),
    )


def preview_for_all(choices: HubChoices, now: datetime | None = None) -> RulesPreview:
    """Previews rules for all workspaces: `kinds` has what becomes stricter in each. Raises SpecError."""
    rule_changes.check_hub(choices)
    moment = now or timezone.now()
    kinds: list[KindPreview] = []
    stricter = rule_changes.stricter_for_all(choices)
    for workspace, rules in stricter:
        kinds += _removing(workspace, rules, moment)
    return RulesPreview(
        confirmations.sign(confirmations.subject_of(None, choices)),
        moment + GRACE if stricter else None,
        kinds,
    )


def _removing(workspace: Workspace, rules: Mapping[DataKind, Rule], now: datetime) -> list[KindPreview]:
    return [preview_kind(workspace, kind, rule, now) for kind, rule in rules.items() if rule.days is not None]


def preview_kind(workspace: Workspace, kind: DataKind, rule: Rule, now: datetime) -> KindPreview:
    """Returns what the rule would remove of one kind."""
    due = due_runs(workspace, kind, rule, now)
    totals = due.order_by().aggregate(count=Count("pk"), oldest=Min("finished_at"), newest=Max("finished_at"))
    concerned = concerned_runs(workspace, kind, rule, now)
    return KindPreview(
        kind,
        workspace,
        rule,
        totals["count"],
        contents.total_bytes(kind, due.order_by().values("pk")),
        totals["oldest"],
        totals["newest"],
        list(_short(due[:MAX_LISTED])),
        list(_keep_reasons(workspace, concerned)),
        concerned.count() - totals["count"],
    )


def _keep_reasons(workspace: Workspace, concerned: RunQuerySet) -> Iterable[KeepReason]:
    for protection in PROTECTIONS:
        runs = concerned.filter(protection.condition(workspace))
        if count := runs.count():
            yield KeepReason(protection.key, protection.words, count, list(_short(runs[:MAX_LISTED_EACH])))


def _short(runs: RunQuerySet) -> RunQuerySet:
    return runs.only("pk", "number", "display_name", "finished_at", "state", "workspace")

"""The open alerts and their history: pending, firing, cleared. Each change is written once, whoever finds it.

Rows carry all that is remembered, so a worker that starts anew goes on where the last one was, and two of them at once agree:
what opens an alert is unique, what fires or clears it is a guarded update.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, OrderBy, QuerySet

from clusters.alerts import gathering
from clusters.alerts.judging import Case, Judged, judge
from clusters.alerts.limits import limits
from clusters.alerts.rules import RULES, GpuRule, NodeRule
from clusters.alerts.telling import tell
from clusters.models import Alert, Node

PENDING, FIRING, CLEARED = "pending", "firing", "cleared"
GAP = timedelta(seconds=60)
"""A condition that nobody looked at for longer has not been shown to last."""
BATCH = 500


def evaluate(now: datetime) -> None:
    """Look at everything once. Any number of times, from any worker."""
    settle(judge(gathering.nodes(now), limits()), now)


def settle(judged: Judged, now: datetime) -> None:
    known = _open()
    _begin([case for key, case in judged.cases.items() if key not in known], now)
    known = _open()
    for alert in known.values():
        case = judged.cases.get(alert.key)
        if case is None:
            _miss(alert, judged, now)
        elif alert.state == PENDING:
            _wait(alert, case, now)
    _see([alert.pk for alert in known.values() if alert.key in judged.cases], now)


def open_alerts(nodes: Iterable[Node]) -> list[Alert]:
    """Those that fire on these nodes, the gravest and then the latest first."""
    return list(firing().filter(node__in=list(nodes)).order_by(*GRAVEST_FIRST))


def firing_of(holder: str) -> list[Alert]:
    """Those that concern this run."""
    return list(firing().filter(holder=holder).order_by(*GRAVEST_FIRST))


def firing() -> QuerySet[Alert]:
    return Alert.objects.filter(state=FIRING).select_related("node", "node__cluster")


def forget(now: datetime) -> None:
    """Delete what cleared long ago."""
    Alert.objects.filter(state=CLEARED, cleared_at__lt=now - timedelta(days=settings.ALERT_KEEP_DAYS)).delete()


GRAVEST_FIRST: tuple[OrderBy | str, ...] = ("severity", F("fired_at").desc(nulls_last=True), "-pk")
"""By its name "critical" comes before "warning"."""


def _open() -> dict[str, Alert]:
    rows = Alert.objects.exclude(state=CLEARED).select_related("node", "node__cluster")
    return {alert.key: alert for alert in rows}


def _begin(cases: Sequence[Case], now: datetime) -> None:
    rows = [
        Alert(
            key=case.key, kind=case.rule.kind, node_id=case.node, subject=case.subject, state=PENDING, severity=case.severity,
            holder=case.held.holder if case.held else "", since=now, seen_at=now,
        )
        for case in cases
    ]
    Alert.objects.bulk_create(rows, batch_size=BATCH, ignore_conflicts=True)


def _see(found: Sequence[int], now: datetime) -> None:
    for some in _batches(found):
        Alert.objects.filter(pk__in=some, seen_at__lt=now).update(seen_at=now)


def _wait(alert: Alert, case: Case, now: datetime) -> None:
    """A condition that holds, and has not fired yet."""
    if now - alert.seen_at > GAP:
        Alert.objects.filter(pk=alert.pk, state=PENDING).update(since=now)
    elif now - alert.since >= timedelta(seconds=case.rule.lasts_s(limits())):
        _fire(alert, case, now)


def _fire(alert: Alert, case: Case, now: datetime) -> None:
    held = case.held
    fields = {
        "state": FIRING, "fired_at": now, "severity": case.severity, "sentence": case.finding.sentence, "node_id": case.node,
        "holder": held.holder if held else "",
        "facts": {
            **case.finding.facts, "gpu": case.finding.gpu or (case.subject if isinstance(case.rule, GpuRule) else ""),
            "holder_label": held.label if held else "", "holder_workspace": held.workspace if held else None,
        },
    }
    with transaction.atomic():
        if Alert.objects.filter(pk=alert.pk, state=PENDING).update(**fields):
            tell(Alert.objects.select_related("node", "node__cluster").get(pk=alert.pk), now)


def _miss(alert: Alert, judged: Judged, now: datetime) -> None:
    """A condition that was not found: is it gone, or is nothing known of it?"""
    if _is_unknown(alert, judged):
        return
    rule = RULES.get(alert.kind)
    gone = now - alert.seen_at
    if alert.state == PENDING:
        if gone > timedelta(seconds=rule.forgives_s if rule else 0.0):
            Alert.objects.filter(pk=alert.pk, state=PENDING).delete()
    elif gone >= timedelta(seconds=rule.hold_s if rule else 0.0):
        with transaction.atomic():
            if Alert.objects.filter(pk=alert.pk, state=FIRING).update(state=CLEARED, cleared_at=now):
                tell(Alert.objects.select_related("node", "node__cluster").get(pk=alert.pk), now)


def _is_unknown(alert: Alert, judged: Judged) -> bool:
    rule = RULES.get(alert.kind)
    if rule is None or alert.kind not in judged.is_on:
        return False
    if isinstance(rule, GpuRule):
        if rule.by_holder and judged.holders.get(alert.subject, alert.holder) != alert.holder:
            return False
        return alert.node_id in judged.unread or _scope(alert) in judged.unknown
    if isinstance(rule, NodeRule) and not rule.of_silent and alert.node_id in judged.unheard:
        return True
    return _scope(alert) in judged.unknown


def _scope(alert: Alert) -> str:
    return ":".join(alert.key.split(":")[:2])


def _batches(found: Collection[int]) -> Iterator[list[int]]:
    ordered = list(found)
    for first in range(0, len(ordered), BATCH):
        yield ordered[first : first + BATCH]

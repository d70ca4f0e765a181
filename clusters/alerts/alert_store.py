"""The open alerts and their history: pending, firing, cleared. Each change is written once, whoever finds it.

Rows carry all that is remembered, so a worker that starts anew goes on where the last one was, and two of
them at once agree: what opens an alert is unique, what fires or clears it is a guarded update."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from django.conf import settings
from django.db import transaction
from django.db.models import F, OrderBy, QuerySet

from clusters.alerts import fact_loader
from clusters.alerts.alert_notifications import tell
from clusters.alerts.evaluation import Case, Judged, judge
from clusters.alerts.limits import limits
from clusters.alerts.rules import RULES, GpuRule, NodeRule
from clusters.models import Alert, Node

PENDING, FIRING, CLEARED = "pending", "firing", "cleared"
GAP = timedelta(seconds=60)
"""A condition that nobody looked at for longer has not been shown to last."""
BATCH = 500
AT_ONCE = 50
"""Alerts of one transaction: few, because everybody else waits for it on SQLite."""
T = TypeVar("T")
Change = Callable[[], None]


def evaluate(now: datetime) -> None:
    """Look at everything once. Any number of times, from any worker."""
    settle(judge(fact_loader.nodes(now), limits()), now)


def settle(judged: Judged, now: datetime) -> None:
    known = _open()
    new = [case for key, case in judged.cases.items() if key not in known]
    if new:
        _begin(new, now)
        known = _open()
    changes = [change for alert in known.values() if (change := _change(alert, judged, now)) is not None]
    for some in _batches(changes, AT_ONCE):
        with transaction.atomic():
            for change in some:
                change()
    _see([alert.pk for alert in known.values() if alert.key in judged.cases], now)


def open_alerts(nodes: Iterable[Node]) -> list[Alert]:
    """Those that fire on these nodes, the gravest and then the latest first."""
    return list(firing().filter(node__in=list(nodes)).order_by(*GRAVEST_FIRST))


def firing() -> QuerySet[Alert]:
    return shown().filter(state=FIRING)


def shown() -> QuerySet[Alert]:
    """With their nodes, but for what is large of these."""
    return Alert.objects.select_related("node", "node__cluster").defer("node__vitals", "node__interpreters")


def forget(now: datetime) -> None:
    """Delete what cleared long ago."""
    Alert.objects.filter(
        state=CLEARED, cleared_at__lt=now - timedelta(days=settings.ALERT_KEEP_DAYS)
    ).delete()


GRAVEST_FIRST: tuple[OrderBy | str, ...] = ("severity", F("fired_at").desc(nulls_last=True), "-pk")
"""By its name "critical" comes before "warning"."""


def _open() -> dict[str, Alert]:
    return {alert.key: alert for alert in Alert.objects.exclude(state=CLEARED)}


def _begin(cases: Sequence[Case], now: datetime) -> None:
    rows = [
        Alert(
            key=case.key,
            kind=case.rule.kind,
            node_id=case.node,
            subject=case.subject,
            state=PENDING,
            severity=case.severity,
            holder=case.held.holder if case.held else "",
            since=now,
            seen_at=now,
        )
        for case in cases
    ]
    Alert.objects.bulk_create(rows, batch_size=BATCH, ignore_conflicts=True)


def _see(found: Sequence[int], now: datetime) -> None:
    for some in _batches(found, BATCH):
        Alert.objects.filter(pk__in=some, seen_at__lt=now).update(seen_at=now)


def _change(alert: Alert, judged: Judged, now: datetime) -> Change | None:
    """What is to become of an open alert; None: it stays as it is."""
    case = judged.cases.get(alert.key)
    if case is None:
        return None if _is_unknown(alert, judged) else _missed(alert, now)
    if alert.state != PENDING:
        return None
    if now - alert.seen_at > GAP:
        return partial(_begin_anew, alert, now)
    return (
        partial(_fire, alert, case, now)
        if now - alert.since >= timedelta(seconds=case.rule.lasts_s(limits()))
        else None
    )


def _missed(alert: Alert, now: datetime) -> Change | None:
    rule = RULES.get(alert.kind)
    gone = now - alert.seen_at
    if alert.state == PENDING:
        return partial(_drop, alert) if gone > timedelta(seconds=rule.forgives_s if rule else 0.0) else None
    return (
        partial(_clear, alert, now)
        if gone >= timedelta(seconds=min(rule.hold_s, limits().hold_s) if rule else 0.0)
        else None
    )


def _begin_anew(alert: Alert, now: datetime) -> None:
    Alert.objects.filter(pk=alert.pk, state=PENDING).update(since=now)


def _drop(alert: Alert) -> None:
    """What never fired is no history."""
    Alert.objects.filter(pk=alert.pk, state=PENDING).delete()


def _clear(alert: Alert, now: datetime) -> None:
    if Alert.objects.filter(pk=alert.pk, state=FIRING).update(state=CLEARED, cleared_at=now):
        tell(shown().get(pk=alert.pk), now)


def _fire(alert: Alert, case: Case, now: datetime) -> None:
    held = case.held
    fields = {
        "state": FIRING,
        "fired_at": now,
        "severity": case.severity,
        "sentence": case.finding.sentence,
        "node_id": case.node,
        "holder": held.holder if held else "",
        "facts": {
            **case.finding.facts,
            "gpu": case.finding.gpu or (case.subject if isinstance(case.rule, GpuRule) else ""),
            "holder_label": held.label if held else "",
            "holder_workspace": held.workspace if held else None,
        },
    }
    if Alert.objects.filter(pk=alert.pk, state=PENDING).update(**fields):
        tell(shown().get(pk=alert.pk), now)


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


def _batches(found: Iterable[T], most: int) -> Iterator[list[T]]:
    ordered = list(found)
    for first in range(0, len(ordered), most):
        yield ordered[first : first + most]

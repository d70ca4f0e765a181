"""The open alerts and their history: pending, firing, cleared. Each change is written exactly once.

All state is in the rows. A worker that restarts therefore continues where the last one stopped, and two
workers may run at once: a unique key opens an alert, and a guarded UPDATE fires or clears it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from django.conf import settings
from django.db import transaction
from django.db.models import F, OrderBy, QuerySet

from clusters.alerts import fact_loader
from clusters.alerts.alert_notifications import notify
from clusters.alerts.evaluation import AlertCase, RuleEvaluation, evaluate_rules
from clusters.alerts.rules import RULES, GpuRule, NodeRule
from clusters.alerts.thresholds import load_limits
from clusters.models import Alert, Node
from workspaces import process_caches

log = logging.getLogger(__name__)
PENDING, FIRING, CLEARED = "pending", "firing", "cleared"
# A pending condition that was not evaluated for longer than this starts its delay again.
MAX_UNSEEN = timedelta(seconds=60)
BATCH = 500
# Alerts that one transaction changes: few, because on SQLite every other writer waits for it.
CHANGES_PER_TRANSACTION = 50
_logged_failures: set[str] = set()
T = TypeVar("T")
AlertChange = Callable[[], None]
Snooze = Mapping[str, object]


def evaluate_all(now: datetime) -> None:
    """Evaluates every rule once and stores the changes. May run at any time, in several workers at once."""
    evaluation = evaluate_rules(fact_loader.load_nodes(now), load_limits())
    _log_failures(evaluation.failures)
    apply_evaluation(evaluation, now)


def apply_evaluation(evaluation: RuleEvaluation, now: datetime) -> None:
    open_by_key = _open()
    new = [case for key, case in evaluation.cases.items() if key not in open_by_key]
    if new:
        _create_pending(new, now)
        # Read again: another worker may have created the same alerts, and rows that were ignored as conflicts
        # have no primary key here.
        open_by_key = _open()
    snoozes = _lasting_snoozes(now) if any(alert.state == PENDING for alert in open_by_key.values()) else {}
    changes = [
        change
        for alert in open_by_key.values()
        if (change := _next_change(alert, evaluation, snoozes, now)) is not None
    ]
    # A crash between two batches leaves the rest as it was; the next evaluation finds and changes it.
    for batch in _batches(changes, CHANGES_PER_TRANSACTION):
        with transaction.atomic():
            for change in batch:
                change()
    _update_seen_at([alert.pk for alert in open_by_key.values() if alert.key in evaluation.cases], now)


def open_alerts(nodes: Iterable[Node]) -> list[Alert]:
    """Returns the alerts that fire on these nodes: the most severe first, then the latest."""
    return list(firing().filter(node__in=list(nodes)).order_by(*BY_SEVERITY))


def firing() -> QuerySet[Alert]:
    return with_nodes().filter(state=FIRING)


def with_nodes() -> QuerySet[Alert]:
    """Returns all alerts with their nodes, without the large columns of these."""
    return Alert.objects.select_related("node", "node__cluster").defer("node__vitals", "node__interpreters")


def delete_old(now: datetime) -> None:
    """Deletes the alerts that cleared more than ALERT_KEEP_DAYS ago."""
    Alert.objects.filter(
        state=CLEARED, cleared_at__lt=now - timedelta(days=settings.ALERT_KEEP_DAYS)
    ).delete()


# By its name "critical" comes before "warning".
BY_SEVERITY: tuple[OrderBy | str, ...] = ("severity", F("fired_at").desc(nulls_last=True), "-pk")


@process_caches.register
def clear_cache() -> None:
    _logged_failures.clear()


def _log_failures(failures: Mapping[str, Exception]) -> None:
    """Logs the failure of each rule once in the life of this process."""
    # A rule that fails over odd facts fails at every evaluation, every few seconds.
    for kind, error in failures.items():
        if kind not in _logged_failures:
            _logged_failures.add(kind)
            log.error("The rule %s failed; this is logged only once", kind, exc_info=error)


def _open() -> dict[str, Alert]:
    return {alert.key: alert for alert in Alert.objects.exclude(state=CLEARED)}


def _create_pending(cases: Sequence[AlertCase], now: datetime) -> None:
    rows = [
        Alert(
            key=case.key,
            kind=case.rule.kind,
            node_id=case.node,
            subject=case.subject,
            state=PENDING,
            severity=case.severity,
            holder=case.lease.holder if case.lease else "",
            since=now,
            seen_at=now,
        )
        for case in cases
    ]
    Alert.objects.bulk_create(rows, batch_size=BATCH, ignore_conflicts=True)


def _update_seen_at(alert_ids: Sequence[int], now: datetime) -> None:
    for batch in _batches(alert_ids, BATCH):
        # A slower worker must not set the time back.
        Alert.objects.filter(pk__in=batch, seen_at__lt=now).update(seen_at=now)


def _next_change(
    alert: Alert, evaluation: RuleEvaluation, snoozes: Mapping[str, Snooze], now: datetime
) -> AlertChange | None:
    """Returns the change that an open alert needs, or None when it stays as it is. `snoozes`: those that
    last, of alerts that are over, by their key."""
    case = evaluation.cases.get(alert.key)
    if case is None:
        return None if _is_unknown(alert, evaluation) else _change_for_absent(alert, evaluation, now)
    # A firing alert keeps the sentence and the holder of the moment when it fired.
    if alert.state != PENDING:
        is_over = alert.snoozed_until is not None and alert.snoozed_until <= now
        return partial(_wake, alert, now) if is_over else None
    # While no worker evaluated, the condition may have been absent: its delay has not been observed.
    if now - alert.seen_at > MAX_UNSEEN:
        return partial(_restart_pending, alert, now)
    return (
        partial(_fire, alert, case, snoozes.get(alert.key, {}), now)
        if now - alert.since >= timedelta(seconds=case.rule.delay_s(evaluation.limits_of(case.node)))
        else None
    )


def _change_for_absent(alert: Alert, evaluation: RuleEvaluation, now: datetime) -> AlertChange | None:
    rule = RULES.get(alert.kind)
    absent_for = now - alert.seen_at
    if alert.state == PENDING:
        return (
            partial(_delete_pending, alert)
            if absent_for > timedelta(seconds=rule.max_gap_s if rule else 0.0)
            else None
        )
    hold_s = evaluation.limits_of(alert.node_id).hold_s
    is_over = absent_for >= timedelta(seconds=min(rule.clear_after_s, hold_s) if rule else 0.0)
    return partial(_clear, alert, now) if is_over else None


def _restart_pending(alert: Alert, now: datetime) -> None:
    Alert.objects.filter(pk=alert.pk, state=PENDING).update(since=now)


def _delete_pending(alert: Alert) -> None:
    """Deletes a pending alert, because an alert that never fired does not belong in the history."""
    Alert.objects.filter(pk=alert.pk, state=PENDING).delete()


def _clear(alert: Alert, now: datetime) -> None:
    # The filter on the state decides between two workers: only the one whose UPDATE counts a row notifies.
    if Alert.objects.filter(pk=alert.pk, state=FIRING).update(state=CLEARED, cleared_at=now):
        notify(with_nodes().get(pk=alert.pk), now)


def _wake(alert: Alert, now: datetime) -> None:
    """Ends a snooze whose time is over, and notifies again unless somebody has acknowledged the alert."""
    snoozed = Alert.objects.filter(pk=alert.pk, state=FIRING, snoozed_until=alert.snoozed_until)
    if snoozed.update(snoozed_until=None, snoozed_by=""):
        current = with_nodes().get(pk=alert.pk)
        if current.acknowledged_at is None:
            notify(current, now, key_end=f":{now:%Y%m%d%H%M%S}")


def _lasting_snoozes(now: datetime) -> dict[str, Snooze]:
    """Returns the snoozes that last of alerts that are over, by the key of their case: an unstable condition
    that comes back must not end one. One query for all, because a whole fleet may fire at once."""
    over = Alert.objects.filter(state=CLEARED, snoozed_until__gt=now).order_by("pk")
    return {
        alert.key: {"snoozed_until": alert.snoozed_until, "snoozed_by": alert.snoozed_by}
        for alert in over.only("key", "snoozed_until", "snoozed_by")
    }


def _fire(alert: Alert, case: AlertCase, snooze: Snooze, now: datetime) -> None:
    lease = case.lease
    fields = {
        "state": FIRING,
        "fired_at": now,
        "severity": case.severity,
        "sentence": case.match.sentence,
        "node_id": case.node,
        "holder": lease.holder if lease else "",
        **snooze,
        "facts": {
            **case.match.facts,
            "cause": case.match.cause,
            "gpu": case.match.gpu or (case.subject if isinstance(case.rule, GpuRule) else ""),
            "holder_label": lease.label if lease else "",
            "holder_workspace": lease.workspace if lease else None,
        },
    }
    if Alert.objects.filter(pk=alert.pk, state=PENDING).update(**fields):
        notify(with_nodes().get(pk=alert.pk), now)


def _is_unknown(alert: Alert, evaluation: RuleEvaluation) -> bool:
    rule = RULES.get(alert.kind)
    # An alert of a rule that no longer exists or was disabled clears, instead of firing for ever.
    if rule is None or not rule.is_enabled(evaluation.limits_of(alert.node_id)):
        return False
    if isinstance(rule, GpuRule):
        # Even while the node is silent the hub knows that the GPU has another holder now, so the old case is
        # over.
        if rule.per_holder and evaluation.holders.get(alert.subject, alert.holder) != alert.holder:
            return False
        return alert.node_id in evaluation.unreadable_nodes or _scope(alert) in evaluation.unknown_scopes
    if isinstance(rule, NodeRule) and not rule.applies_to_silent and alert.node_id in evaluation.silent_nodes:
        return True
    return _scope(alert) in evaluation.unknown_scopes


def _scope(alert: Alert) -> str:
    # A key begins with its scope, which is the rule's kind and the subject (`AlertCase.key`).
    return ":".join(alert.key.split(":")[:2])


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    ordered = list(items)
    for first in range(0, len(ordered), size):
        yield ordered[first : first + size]

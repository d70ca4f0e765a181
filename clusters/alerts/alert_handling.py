"""What people do with a firing alert: acknowledge it, or snooze it for a time."""

from __future__ import annotations

from datetime import timedelta

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.utils import timezone

from clusters.alerts.alert_notifications import publish_change
from clusters.alerts.rules import RULES, is_about_run
from clusters.models import Alert
from trainhub_launch.errors import LaunchError, SpecError
from workspaces import audit
from workspaces.access import Principal, may_operate
from workspaces.states import Role

# The lengths that are offered, with their words on pages.
SNOOZES: dict[str, tuple[str, timedelta]] = {
    "1h": ("1 hour", timedelta(hours=1)),
    "8h": ("8 hours", timedelta(hours=8)),
    "1d": ("1 day", timedelta(days=1)),
    "7d": ("7 days", timedelta(days=7)),
}


class AlertNotFiring(LaunchError):
    """The alert has cleared meanwhile, so there is nothing left to acknowledge or snooze."""


def may_handle(alert: Alert, who: Principal) -> bool:
    """Returns whether the person may acknowledge and snooze the alert.

    Operators may handle every alert, because each reaches all workspaces of the cluster; contributors those
    about a run of their workspace."""
    if may_operate(who.user):
        return True
    is_ours = alert.facts.get("holder_workspace") == who.workspace.pk
    return is_about_run(RULES.get(alert.kind)) and is_ours and who.may(Role.CONTRIBUTOR)


@transaction.atomic
def acknowledge(alert: Alert, who: Principal) -> None:
    """Records that the person has seen the alert. Repeating it changes nothing. Raises AlertNotFiring."""
    current = _locked(alert, who)
    if current.acknowledged_at is None:
        name = who.user.get_username()
        _write(current, acknowledged_at=timezone.now(), acknowledged_by=name)
        audit.record(who.user, "alert.acknowledged", _subject(current), who.workspace)


@transaction.atomic
def snooze(alert: Alert, length: str, who: Principal) -> None:
    """Silences the alert for this length, one of SNOOZES. Raises SpecError and AlertNotFiring."""
    current = _locked(alert, who)
    if length not in SNOOZES:
        raise SpecError("for", f"must be one of {', '.join(SNOOZES)}")
    until = timezone.now() + SNOOZES[length][1]
    _write(current, snoozed_until=until, snoozed_by=who.user.get_username())
    audit.record(
        who.user, "alert.snoozed", _subject(current), who.workspace, until=until.isoformat(timespec="seconds")
    )


@transaction.atomic
def end_snooze(alert: Alert, who: Principal) -> None:
    """Ends the snooze before its time. Repeating it changes nothing. Raises AlertNotFiring."""
    current = _locked(alert, who)
    if current.snoozed_until is not None:
        _write(current, snoozed_until=None, snoozed_by="")
        audit.record(who.user, "alert.snooze_ended", _subject(current), who.workspace)


def must_handle(alert: Alert, who: Principal) -> None:
    """Raises PermissionDenied unless the person may handle the alert."""
    if not may_handle(alert, who):
        raise PermissionDenied(
            "Alerts about machines are handled by the operators of this installation, those about a run by "
            "the contributors of its workspace."
        )


def _locked(alert: Alert, who: Principal) -> Alert:
    must_handle(alert, who)
    # Without the node: PostgreSQL cannot lock the row of an outer join.
    current = Alert.objects.select_for_update().get(pk=alert.pk)
    if current.state != "firing":
        raise AlertNotFiring("The alert has cleared meanwhile; there is nothing left to do.")
    return current


def _write(alert: Alert, **fields: object) -> None:
    Alert.objects.filter(pk=alert.pk).update(**fields)
    publish_change(alert)


def _subject(alert: Alert) -> str:
    node = "" if alert.node is None else f" on {alert.node.name}"
    return f"{alert.kind} {alert.pk}{node}"

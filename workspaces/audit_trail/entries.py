"""Reads the audit trail: who may see which events, filters, and words for what was done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet

from workspaces.access import Principal, lacking, may_operate
from workspaces.models import AuditEvent
from workspaces.states import Role

# Verb -> what the person did to the subject, in the past tense.
WORDS = {
    "alert.acknowledged": "acknowledged the alert",
    "alert.snooze_ended": "ended the snooze of the alert",
    "alert.snoozed": "snoozed the alert",
    "alert_thresholds.changed": "changed the thresholds of alerts for",
    "audit.expired": "deleted from the audit trail, because of their age,",
    "channel.changed": "changed the notification channel",
    "channel.created": "created the notification channel",
    "channel.deleted": "deleted the notification channel",
    "cluster.changed": "changed the cluster",
    "cluster.deleted": "deleted the cluster",
    "cluster.drained": "drained the cluster",
    "cluster.login-key": "replaced the ssh key for the login node of the cluster",
    "cluster.made": "created the cluster",
    "cluster.observer-token": "changed the token with which the hub looks at the Slurm of the cluster",
    "cluster.resumed": "resumed the cluster",
    "cluster.shares_changed": "changed the shares of workspaces in the cluster",
    "cluster.slurm-token": "changed their own token for the Slurm of the cluster",
    "cluster.unix-account": "changed the Unix account of a person in the cluster",
    "experiment.delete": "deleted the experiment",
    "experiment.purge": "permanently deleted the experiment",
    "experiment.restore": "restored the experiment",
    "factor.added": "added a second factor of",
    "factor.code_used": "used a recovery code of",
    "factor.codes_created": "made recovery codes for",
    "factor.removed": "removed a second factor of",
    "factor.reset": "took the second factors from",
    "dataset.cancel": "cancelled the upload of",
    "dataset.create": "made the dataset",
    "dataset.delete": "deleted the dataset",
    "dataset.derive": "made, from outputs of a run,",
    "dataset.describe": "described the dataset",
    "dataset.refresh": "listed the files of the dataset anew:",
    "dataset.upload": "uploaded the files of",
    "datastore.change": "changed the datastore",
    "datastore.create": "added the datastore",
    "datastore.delete": "deleted the datastore",
    "datastore.test": "tested the datastore",
    "environment.build": "ordered nodes to build",
    "environment.fetch": "had the hub fetch the files of",
    "environment.build_canceled": "canceled the build of",
    "environment.create": "made the environment",
    "environment.current": "marked as current again the version",
    "environment.delete": "deleted the environment",
    "environment.outdated": "marked as outdated the version",
    "environment.version": "made the version",
    "hub.backed-up": "backed up the hub:",
    "hub.restored": "restored the hub from the backup",
    "invitation.accepted": "accepted the invitation of",
    "invitation.declined": "declined the invitation of",
    "invitation.link_created": "made, as an invitation,",
    "invitation.mailed": "invited by mail",
    "invitation.withdrawn": "withdrew the invitation of",
    "log_target.removed": "removed the log system",
    "log_target.stored": "named as the log system of the workspace",
    "mail.confirmed": "confirmed the mail address of",
    "mail.removed": "removed the mail address of",
    "mail.requested": "asked for another mail address of",
    "member.added": "added the member",
    "member.invited": "invited",
    "member.kept_owner": "left, as the only owner,",
    "member.removed": "removed the member",
    "member.role_changed": "changed the role of",
    "model.alias-deleted": "deleted the alias",
    "model.alias-set": "set the alias",
    "model.created": "created the model",
    "model.deleted": "deleted the model",
    "model.export": "exported the model",
    "model.key-rotated": "replaced the signing key",
    "model.protected": "changed the protection of the model",
    "model.registered": "registered",
    "model.renamed": "renamed the model",
    "model.stage-set": "set the stage of",
    "model.version-deleted": "deleted",
    "node.drained": "drained the node",
    "node.invited": "made a join token for the node",
    "node.joined": "joined as the node",
    "node.low_priority": "changed the priority of the node",
    "node.monitor_only": "changed whether runs may use the node",
    "node.removed": "removed the node",
    "node.resumed": "resumed the node",
    "node.revoked": "revoked the node",
    "node.upgrade_canceled": "canceled the upgrade of the agents of",
    "node.upgrade_ordered": "ordered another version of the agent for",
    "node.window_ended": "ended the window of the node",
    "node.window_set": "set a reserved or maintenance window of the node",
    "password.changed": "changed the password of",
    "password.changed_by_link": "chose a password by a link for",
    "password.link_created": "made a link for a new password for",
    "password.link_mailed": "was mailed a link for a new password for",
    "person.activated": "activated the account",
    "person.connected": "connected an external account to",
    "person.created": "created the account",
    "person.deactivated": "deactivated the account",
    "person.disconnected": "disconnected an external account from",
    "person.no_operator": "took the operator's rights from",
    "person.operator": "made an operator of",
    "person.sign_in_failed": "failed to sign in as",
    "person.renamed": "changed the display name of",
    "person.signed-in-by-link": "signed in by the demo's link as",
    "person.signed_in": "signed in as",
    "person.signed_out": "signed out as",
    "quota.changed": "changed the quota of",
    "retention.canceled": "canceled stricter retention rules of",
    "retention.changed": "changed the retention rules of",
    "retention.removed": "removed, by a retention rule,",
    "run.archive": "archived",
    "run.cancel": "canceled",
    "run.delete": "deleted",
    "run.pin": "pinned",
    "run.purge": "permanently deleted",
    "run.restore": "restored",
    "run.submit": "submitted",
    "run.tag": "tagged",
    "run.unarchive": "unarchived",
    "run.unpin": "unpinned",
    "run.untag": "removed a tag of",
    "secret.deleted": "deleted the secret",
    "secret.key_rotated": "encrypted all secrets anew, with the key",
    "secret.stored": "stored the secret",
    "secret.used": "used the secret",
    "service_account.created": "created the service account",
    "service_account.deleted": "deleted the service account",
    "service_account.disabled": "disabled the service account",
    "service_account.enabled": "enabled the service account",
    "session.ended": "ended a session of",
    "session.others_ended": "ended the other sessions of",
    "token.all_revoked": "revoked all tokens of",
    "token.created": "created the token",
    "token.device_refused": "refused a token to the program",
    "token.revoked": "revoked the token",
    "workspace.archived": "archived the workspace",
    "workspace.created": "created the workspace",
    "workspace.owner_joined": "joined as an owner",
    "workspace.renamed": "renamed the workspace",
    "workspace.restored": "restored the workspace",
}
# The objects of which the trail speaks: the part of a verb before its dot, and its word.
KINDS = {
    "alert": "Alerts",
    "channel": "Notifications",
    "cluster": "Clusters",
    "dataset": "Datasets",
    "datastore": "Datastores",
    "environment": "Environments",
    "experiment": "Experiments",
    "factor": "Second factors",
    "hub": "The hub",
    "invitation": "Invitations",
    "log": "Log systems",
    "mail": "Mail addresses",
    "member": "Members",
    "model": "Models",
    "node": "Nodes",
    "password": "Passwords",
    "person": "Accounts and sign-ins",
    "quota": "Quotas",
    "retention": "Retention rules",
    "run": "Runs",
    "secret": "Secrets",
    "service": "Service accounts",
    "session": "Sessions",
    "token": "Tokens",
    "workspace": "Workspaces",
}
MAX_TEXT = 200


class FilterError(ValueError):
    """A filter cannot be understood; `field` is its name."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


@dataclass(frozen=True)
class AuditFilter:
    """`actor`: the whole name of who did it. `kind`: a key of KINDS. `text`: a part of the subject. `begin`
    and `end`: the first and last day (UTC). "" and None: any."""

    actor: str = ""
    kind: str = ""
    text: str = ""
    begin: date | None = None
    end: date | None = None


def read_filter(fields: Mapping[str, str]) -> AuditFilter:
    """Returns the filter in the parameters of a request: actor, kind, text, from, to. Raises FilterError."""
    kind = fields.get("kind", "")
    if kind and kind not in KINDS:
        raise FilterError("kind", f"must be one of {', '.join(KINDS)}")
    actor, text = (fields.get(name, "").replace("\x00", "").strip()[:MAX_TEXT] for name in ("actor", "text"))
    return AuditFilter(actor, kind, text, _day(fields, "from"), _day(fields, "to"))


def visible_events(who: Principal) -> QuerySet[AuditEvent]:
    """Returns the events that this person may see: operators all, owners those of their workspace. Raises
    PermissionDenied for others."""
    events = AuditEvent.objects.select_related("workspace")
    if may_operate(who.user):
        return events
    if not who.may(Role.OWNER):
        raise PermissionDenied(lacking(who, Role.OWNER))
    return events.filter(workspace=who.workspace)


def filter_events(events: QuerySet[AuditEvent], criteria: AuditFilter) -> QuerySet[AuditEvent]:
    """Returns those of the events that match, the newest first."""
    if criteria.actor:
        events = events.filter(actor=criteria.actor)
    if criteria.kind:
        events = events.filter(verb__startswith=criteria.kind)
    if criteria.text:
        events = events.filter(subject__icontains=criteria.text)
    if criteria.begin is not None:
        events = events.filter(at__gte=_midnight(criteria.begin))
    if criteria.end is not None:
        events = events.filter(at__lt=_midnight(criteria.end) + timedelta(days=1))
    return events.order_by("-pk")


def action_text(verb: str) -> str:
    """Returns what was done in words; for a verb of another version the verb itself."""
    return WORDS.get(verb, verb.replace(".", " ").replace("_", " ").replace("-", " "))


def detail_text(detail: Mapping[str, object]) -> str:
    """Returns the details in one line: `role: owner, is new: yes`."""
    return ", ".join(f"{name.replace('_', ' ')}: {_value(value)}" for name, value in _pairs(detail))


def _pairs(detail: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    return ((name, value) for name, value in sorted(detail.items()) if value not in (None, "", [], {}))


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " ".join(map(str, value))
    return detail_text(value) if isinstance(value, dict) else str(value)


def _day(fields: Mapping[str, str], name: str) -> date | None:
    text = fields.get(name, "").strip()
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as error:
        raise FilterError(name, "must be a day such as 2026-11-25") from error


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)

"""Gives the values of secrets to those who use them, and records each use."""

from __future__ import annotations

from collections.abc import Collection

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from workspaces import audit
from workspaces.models import Secret, SecretUse, User, Workspace
from workspaces.secrets import store
from workspaces.secrets.errors import SecretsUnavailable

RUN, WEBHOOK, ENVIRONMENT, SOURCE, DATASET = "run", "webhook", "environment", "source", "dataset"
DATASTORE, LOG_TARGET = "datastore", "log_target"


class MissingSecret(SecretsUnavailable):
    """A secret that is used has been deleted, or belongs to somebody else."""


def take(  # noqa: PLR0917
    workspace: Workspace,
    user: User | None,
    names: Collection[str],
    kind: str,
    subject: str,
    node: str = "",
    *,
    actor: User | None = None,
) -> dict[str, str]:
    """Returns name -> value for one user of secrets, and records the use. `user`: whose own secrets come
    before the workspace's, None for the workspace's alone; `actor`: who caused the use, if not the user.
    Raises MissingSecret, and SecretsUnavailable; then nothing is recorded."""
    secrets = store.resolve(workspace, user, names)
    missing = sorted(set(names) - set(secrets))
    if missing:
        raise MissingSecret(f"there is no secret {' and no secret '.join(missing)} any more in {workspace}")
    values = {name: store.value_of(secret) for name, secret in secrets.items()}
    for name in sorted(secrets):
        _note(secrets[name], user or actor, kind, subject, node)
    return values


def _note(secret: Secret, user: User | None, kind: str, subject: str, node: str) -> None:
    """Counts a use. The first one by this run on this node, by this webhook or environment is an event of the
    audit trail, too."""
    key = {"secret": secret, "kind": kind, "subject": subject[:100], "node": node[:100]}
    now = timezone.now()
    if SecretUse.objects.filter(**key).update(count=F("count") + 1, last_at=now):
        return
    try:
        with transaction.atomic():
            SecretUse.objects.create(**key, first_at=now, last_at=now)
            place = {"node": node} if node else {}
            audit.record(
                user or secret.changed_by,
                "secret.used",
                secret.name,
                secret.workspace,
                **{kind: subject},
                **place,
            )
    except IntegrityError:
        # Two requests at the same moment: the other one has made the row.
        SecretUse.objects.filter(**key).update(count=F("count") + 1, last_at=now)

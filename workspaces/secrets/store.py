"""Stores, lists and resolves the secrets of a workspace and of its people.

A value goes in here and comes out only for a run's node or a webhook (`workspaces.secrets.uses`)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from django.db import transaction
from django.db.models import Max, Q, QuerySet
from django.utils import timezone

from workspaces import audit
from workspaces.access import Principal, lacking
from workspaces.models import HubSecret, Secret, User, Workspace
from workspaces.secrets import keyring
from workspaces.secrets.errors import SecretError, SecretsUnavailable
from workspaces.secrets.masking import masked_texts
from workspaces.states import Role

PERSON, WORKSPACE = "person", "workspace"
SCOPES = (WORKSPACE, PERSON)
NEEDED = {PERSON: Role.CONTRIBUTOR, WORKSPACE: Role.OWNER}
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
NAME_RULE = "use up to 64 letters, digits, '.', '_' and '-', beginning with a letter or digit"
# A variable of an environment may have 128 KiB; a key or a certificate needs a small part of it.
MAX_VALUE_BYTES = 32 * 1024
# For one workspace, and for one person in it.
MAX_SECRETS = 200


class NotAllowed(Exception):
    """The person's role does not suffice; the message is a sentence for that person."""


def visible(who: Principal) -> QuerySet[Secret]:
    """Returns the secrets that `who` can use: the workspace's and their own, with `last_used_at`."""
    secrets = Secret.objects.filter(Q(user=None) | Q(user=who.user), workspace=who.workspace)
    return secrets.annotate(last_used_at=Max("uses__last_at")).order_by("name", "user_id")


def scope_of(secret: Secret) -> str:
    return WORKSPACE if secret.user_id is None else PERSON


def require_role(who: Principal, scope: str) -> None:
    """Raises NotAllowed if `who` may not change secrets of this scope."""
    if not who.may(NEEDED[scope]):
        raise NotAllowed(lacking(who, NEEDED[scope]))


def put(who: Principal, name: str, value: str, scope: str) -> Secret:
    """Stores the value under this name, a new one or in place of the old one. Raises SecretError, NotAllowed
    and SecretsUnavailable; then nothing is changed."""
    require_role(who, scope)
    check(name, value)
    make_keyring()
    owner = who.user if scope == PERSON else None
    with transaction.atomic():
        # Locks the workspace's row, so that two first values of one name come one after the other.
        Workspace.objects.select_for_update().get(pk=who.workspace.pk)
        own = Secret.objects.filter(workspace=who.workspace, user=owner)
        secret = own.filter(name=name).first()
        if secret is None:
            if own.count() >= MAX_SECRETS:
                raise SecretError(
                    "name", f"there are {MAX_SECRETS} secrets already; delete one that is not used any more"
                )
            secret = Secret(workspace=who.workspace, user=owner, name=name, version=0)
        secret.version += 1
        secret.sealed = keyring.load().seal(value, context(secret))
        secret.is_masked = bool(masked_texts(value))
        secret.changed_by, secret.changed_at = who.user.get_username(), timezone.now()
        secret.save()
        audit.record(who.user, "secret.stored", name, who.workspace, scope=scope, version=secret.version)
    return secret


@transaction.atomic
def delete(who: Principal, secret: Secret) -> None:
    """Deletes a secret. Runs that have its value keep it until they end. Raises NotAllowed."""
    require_role(who, scope_of(secret))
    audit.record(who.user, "secret.deleted", secret.name, who.workspace, scope=scope_of(secret))
    secret.delete()


def check(name: str, value: str) -> None:
    """Raises SecretError for a name or a value that cannot be stored."""
    if not NAME.fullmatch(name):
        raise SecretError("name", NAME_RULE)
    if not value:
        raise SecretError("value", "must not be empty; delete the secret instead")
    if "\x00" in value:
        raise SecretError("value", "must not contain a NUL character, which no environment variable can hold")
    size = len(value.encode(errors="surrogatepass"))
    if size > MAX_VALUE_BYTES:
        raise SecretError(
            "value",
            f"has {size:,} bytes, and at most {MAX_VALUE_BYTES:,} are accepted; keep large files outside, "
            "and store here the key that opens them",
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise SecretError("value", "contains half a surrogate pair, which is no text") from error


def resolve(workspace: Workspace, user: User | None, names: Collection[str]) -> dict[str, Secret]:
    """Returns the secrets of these names that a run of `user` gets: the person's own before the workspace's.
    Names without a secret are left out."""
    secrets = Secret.objects.filter(
        Q(user=None) | Q(user=user) if user is not None else Q(user=None),
        workspace=workspace,
        name__in=list(names),
    )
    # The person's own come last, and so replace the workspace's.
    return {secret.name: secret for secret in sorted(secrets, key=lambda secret: secret.user_id is not None)}


def value_of(secret: Secret) -> str:
    """Returns the value in plain text. Raises SecretsUnavailable."""
    return keyring.load().open(bytes(secret.sealed), context(secret))


def context(secret: Secret) -> str:
    """Returns what a value is bound to: in any other row it cannot be decrypted. No part can contain `|`."""
    scope = WORKSPACE if secret.user_id is None else f"{PERSON}:{secret.user_id}"
    return f"{secret.workspace_id}|{scope}|{secret.name}|{secret.version}"


def unreadable(secrets: Iterable[Secret]) -> list[tuple[Secret, str]]:
    """Returns the secrets whose values cannot be decrypted, with the reason."""
    broken = []
    for secret in secrets:
        try:
            value_of(secret)
        except SecretsUnavailable as error:
            broken.append((secret, error.message))
    return broken


def make_keyring() -> None:
    """Makes the first key. Not where there are secrets already: the file that they need is only missing, and
    a new one in its place would hide that. Raises SecretsUnavailable."""
    if not keyring.exists() and not Secret.objects.exists() and not HubSecret.objects.exists():
        keyring.create()

"""The person behind an account at a provider or a proxy: found by its subject, or by a mail address that both
sides have verified, or made on the first sign-in."""

from __future__ import annotations

import re
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.utils import timezone

from workspaces import audit
from workspaces.authentication.external import groups
from workspaces.models import ExternalAccount, User
from workspaces.security_notices.notices import notify_person
from workspaces.states import SignInChange

MAX_USERNAME, MAX_DISPLAY_NAME, MAX_SUBJECT, MAX_GROUPS = 150, 100, 255, 1000
MAX_EMAIL = 254
_NOT_IN_USERNAMES = re.compile(r"[^\w.@+-]+")


class SignInRefused(Exception):
    """Somebody whom the provider knows may not come in; `message` is a sentence with the remedy."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True)
class ExternalIdentity:
    """What a provider or a proxy says about a person. `email`: "" unless it has verified that address.
    `way`: the word for it in the audit trail."""

    issuer: str
    subject: str
    way: str
    username: str = ""
    display_name: str = ""
    email: str = ""
    groups: frozenset[str] = frozenset()


def make_identity(
    issuer: str, subject: str, way: str, *, username: str, display_name: str, email: str, group_names: object
) -> ExternalIdentity:
    """Returns an identity of values that come from outside. Raises SignInRefused for an unusable subject."""
    if not subject or len(subject) > MAX_SUBJECT or "\x00" in subject:
        raise SignInRefused("The sign-in service does not say who you are. Ask an operator of this hub.")
    name = " ".join(display_name.split())[:MAX_DISPLAY_NAME]
    names = [group_names] if isinstance(group_names, str) else group_names
    listed = names[:MAX_GROUPS] if isinstance(names, list) else []
    return ExternalIdentity(
        issuer=issuer,
        subject=subject,
        way=way,
        # For PostgreSQL, which stores no NUL.
        username=username.replace("\x00", ""),
        display_name=name if name.isprintable() else "",
        email=_checked_email(email),
        groups=frozenset(group for group in listed if isinstance(group, str)),
    )


def sign_in_person(identity: ExternalIdentity) -> User:
    """Returns the person whose account this is, with memberships as their groups say now. Raises
    SignInRefused."""
    user = _known_person(identity) or _new_person(identity)
    if not user.is_active:
        raise SignInRefused(f"The account {user} is deactivated. Ask an operator of this hub.")
    _complete(user, identity)
    groups.apply_groups(user, identity.groups, settings.SIGN_IN.groups, identity.way)
    return user


def connect(user: User, identity: ExternalIdentity) -> None:
    """Lets a person sign in by this account from now on. Raises SignInRefused if it is somebody else's."""
    account, is_new = ExternalAccount.objects.get_or_create(
        issuer=identity.issuer, subject=identity.subject, defaults={"user": user}
    )
    if account.disconnected_at is not None:
        # Whoever had disconnected it has no claim to it any more.
        again = ExternalAccount.objects.filter(pk=account.pk, disconnected_at=account.disconnected_at)
        now = timezone.now()
        is_new = again.update(user=user, disconnected_at=None, created_at=now) == 1
    elif account.user_id != user.pk:
        raise SignInRefused("This account belongs to somebody else here. Ask an operator of this hub.")
    if is_new:
        audit.record(user, "person.connected", user.get_username(), way=identity.way)
        notify_person(user, SignInChange.CONNECTED, identity.way)


def _known_person(identity: ExternalIdentity) -> User | None:
    account = (
        ExternalAccount.objects.select_related("user")
        .filter(issuer=identity.issuer, subject=identity.subject)
        .first()
    )
    if account is not None and account.disconnected_at is not None:
        raise SignInRefused(
            "This account was disconnected from the one here. Sign in another way and connect it again under "
            "Settings, Profile; if you have no other way, ask an operator of this hub for a link for a new "
            "password."
        )
    if account is not None:
        return account.user
    user = User.objects.filter(email__iexact=identity.email).first() if identity.email else None
    if user is not None and user.is_active:
        connect(user, identity)
    return user


def _new_person(identity: ExternalIdentity) -> User:
    if not settings.SIGN_IN.makes_accounts:
        raise SignInRefused("You have no account at this hub. Ask an owner of a workspace for an invitation.")
    username = _username(identity)
    taken = SignInRefused(
        f"Somebody here is called {username} already. If that is you, sign in with your password and connect "
        "the account under Settings, Profile; otherwise ask an operator of this hub."
    )
    other = User.objects.filter(username__iexact=username).first()
    if other is not None and other.is_service_account:
        raise SignInRefused(
            f"A service account here is called {other}, so you cannot have that name. Ask an owner of a "
            "workspace for an invitation by link, choose another name there, and connect the account under "
            "Settings, Profile."
        )
    if other is not None:
        raise taken
    try:
        with transaction.atomic():
            user = User(username=username, email=identity.email, display_name=identity.display_name)
            user.set_unusable_password()
            user.save()
            ExternalAccount.objects.create(user=user, issuer=identity.issuer, subject=identity.subject)
            audit.record(user, "person.created", username, way=identity.way)
    except IntegrityError as error:
        raise taken from error
    return user


def _complete(user: User, identity: ExternalIdentity) -> None:
    """Stores what the person has not stated here: name and address."""
    if identity.display_name and not user.display_name:
        User.objects.filter(pk=user.pk).update(display_name=identity.display_name)
    is_free = identity.email and not User.objects.filter(email__iexact=identity.email).exists()
    if is_free and not user.email:
        try:
            with transaction.atomic():
                User.objects.filter(pk=user.pk).update(email=identity.email)
        except IntegrityError:
            return  # somebody else has got it at this moment, so it stays theirs
        audit.record(user, "mail.confirmed", user.get_username(), address=identity.email, way=identity.way)


def _username(identity: ExternalIdentity) -> str:
    for text in (identity.username, identity.email, identity.subject):
        name = User.normalize_username(_NOT_IN_USERNAMES.sub("-", text).strip("-"))[:MAX_USERNAME]
        try:
            UnicodeUsernameValidator()(name)
        except ValidationError:
            continue
        return name
    raise SignInRefused("The sign-in service gives you no name that can be used here. Ask an operator.")


def _checked_email(text: str) -> str:
    try:
        validate_email(text)
    except ValidationError:
        return ""
    local, _, domain = text.rpartition("@")
    return f"{local}@{domain.lower()}" if len(text) <= MAX_EMAIL else ""

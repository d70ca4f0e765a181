"""Who belongs to a workspace, and as what: add, change, remove. A workspace always keeps an owner."""

from __future__ import annotations

import secrets

from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from workspaces import audit
from workspaces.access import Principal, access_changed
from workspaces.models import ApiToken, Membership, User
from workspaces.states import Role


class PeopleError(Exception):
    """What cannot be done to a membership; `field` is the form field it concerns."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


@transaction.atomic
def add(who: Principal, username: str, role: Role) -> tuple[User, str | None]:
    """Make `username` a member. For a person new to TrainHub also their one-time password, else None."""
    user, password = _existing_or_new(username)
    if Membership.objects.filter(workspace=who.workspace, user=user).exists():
        raise PeopleError("username", f"{username} is a member already; change the role in the list")
    Membership.objects.create(workspace=who.workspace, user=user, role=role)
    audit.record(who.user, "member.added", username, who.workspace, role=role, is_new=password is not None)
    return user, password


@transaction.atomic
def change_role(who: Principal, membership: Membership, role: Role) -> None:
    if role is not Role.OWNER:
        _keep_an_owner(membership)
    Membership.objects.filter(pk=membership.pk).update(role=role)
    access_changed(membership.user)
    audit.record(who.user, "member.role_changed", str(membership.user), who.workspace, role=role)


@transaction.atomic
def remove(who: Principal, membership: Membership) -> None:
    """End a membership and every token of that person for this workspace; the person remains."""
    _keep_an_owner(membership)
    tokens = ApiToken.objects.filter(workspace=who.workspace, user=membership.user, revoked_at=None)
    tokens.update(revoked_at=timezone.now())
    membership.delete()
    access_changed(membership.user)
    audit.record(who.user, "member.removed", str(membership.user), who.workspace)


def _keep_an_owner(membership: Membership) -> None:
    owners = Membership.objects.select_for_update().filter(workspace=membership.workspace, role=Role.OWNER)
    if [owner.pk for owner in owners] == [membership.pk]:
        raise PeopleError("role", f"{membership.user} is the only owner; make somebody else owner first")


def _existing_or_new(username: str) -> tuple[User, str | None]:
    found = User.objects.filter(username__iexact=username).first()
    if found is not None:
        return found, None
    try:
        UnicodeUsernameValidator()(username)
    except ValidationError as error:
        raise PeopleError("username", "use letters, digits and @ . + - _ only") from error
    password = secrets.token_urlsafe(12)
    return User.objects.create_user(username, password=password, password_is_one_time=True), password

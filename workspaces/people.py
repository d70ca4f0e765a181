"""Manages the members of a workspace: add, invite, change, remove. A workspace always has an owner.

Nobody becomes a member without consent: a person with an account is invited, and accepts or declines. An
account that an owner creates belongs to that workspace only, until its person has chosen a password of their
own."""

from __future__ import annotations

import secrets
from typing import NamedTuple

from django.contrib.auth.hashers import make_password
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from workspaces import audit
from workspaces.access import Principal, access_changed
from workspaces.authentication.delays import HashingBusy
from workspaces.models import ApiToken, Invitation, InvitationLink, Membership, Secret, User, Workspace
from workspaces.states import Role


class PeopleError(Exception):
    """A membership cannot be changed as requested; `field` is the form field that it concerns."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


class Added(NamedTuple):
    """The result of `add`: a new member with a one-time password, or (`password` None) a person who is now
    invited."""

    user: User
    password: str | None


def add(who: Principal, username: str, role: Role) -> Added:
    """Creates an account and a membership for a name that is new here; invites the person if the account
    exists. Raises PeopleError."""
    # As it is stored: "ﬁona" with a ligature is the same name as "fiona".
    username = User.normalize_username(username)
    user = User.objects.filter(username__iexact=username).first()
    if user is None:
        _check_name(username)
    elif user.is_service_account:
        raise PeopleError("username", f"{user} is a service account; choose another name for a person")
    elif Membership.objects.filter(workspace=who.workspace, user=user).exists():
        raise PeopleError("username", f"{user} is a member already; change the role in the list")
    elif not _is_unclaimed(user):
        _invite(who, user, role)
        return Added(user, None)
    password = secrets.token_urlsafe(12)
    try:
        # Before the transaction: hashing takes time, and may have to wait for its turn.
        encoded = make_password(password)
    except HashingBusy as delay:
        raise PeopleError("username", delay.message) from delay
    return Added(_add_new(who, username, user, encoded, role), password)


def memberships_of(workspace: Workspace) -> QuerySet[Membership]:
    """Returns the memberships of people, by user name; service accounts are listed apart."""
    rows = Membership.objects.filter(workspace=workspace, user__service_workspace=None)
    return rows.select_related("user", "workspace").order_by("user__username")


@transaction.atomic
def accept_invitation(user: User, invitation: Invitation) -> Membership | None:
    """Makes `user` a member as the invitation says. Returns None if it was withdrawn meanwhile."""
    # Who deletes the row has accepted the invitation: a second request, or a withdrawal meanwhile, finds
    # none.
    if not Invitation.objects.filter(pk=invitation.pk, user=user).delete()[0]:
        return None
    membership, _ = Membership.objects.get_or_create(
        workspace=invitation.workspace, user=user, defaults={"role": invitation.role}
    )
    access_changed(user)
    audit.record(user, "invitation.accepted", user.get_username(), invitation.workspace, role=membership.role)
    return membership


@transaction.atomic
def decline(user: User, invitation: Invitation) -> None:
    Invitation.objects.filter(pk=invitation.pk, user=user).delete()
    audit.record(user, "invitation.declined", user.get_username(), invitation.workspace)


@transaction.atomic
def withdraw(who: Principal, invitation: Invitation) -> None:
    Invitation.objects.filter(pk=invitation.pk, workspace=who.workspace).delete()
    audit.record(who.user, "invitation.withdrawn", invitation.user.get_username(), who.workspace)


@transaction.atomic
def change_role(who: Principal, membership: Membership, role: Role) -> None:
    """Changes a role by hand: from now on the membership follows no groups. Raises PeopleError for the only
    owner."""
    set_role(who.user, membership, role)
    Membership.objects.filter(pk=membership.pk).update(is_from_groups=False)


@transaction.atomic
def set_role(who: User | str, membership: Membership, role: Role, **detail: object) -> None:
    """Changes a role; `detail` is for the audit trail. Raises PeopleError for the only owner."""
    if role is Role.OWNER and membership.user.is_service_account:
        raise PeopleError("role", f"{membership.user} is a service account; only people can be owner")
    if role is not Role.OWNER:
        _keep_an_owner(membership)
        _withdraw_invitations_by(membership)
    Membership.objects.filter(pk=membership.pk).update(role=role)
    access_changed(membership.user)
    audit.record(who, "member.role_changed", str(membership.user), membership.workspace, role=role, **detail)


def remove(who: Principal, membership: Membership) -> None:
    """Ends a membership. Raises PeopleError for the only owner."""
    end_membership(who.user, membership)


@transaction.atomic
def end_membership(who: User | str, membership: Membership, **detail: object) -> None:
    """Ends a membership, every token of that person for this workspace and their own secrets in it. The
    account remains. Raises PeopleError for the only owner."""
    _keep_an_owner(membership)
    _withdraw_invitations_by(membership)
    tokens = ApiToken.objects.filter(workspace=membership.workspace, user=membership.user, revoked_at=None)
    tokens.update(revoked_at=timezone.now())
    Secret.objects.filter(workspace=membership.workspace, user=membership.user).delete()
    membership.delete()
    access_changed(membership.user)
    audit.record(who, "member.removed", str(membership.user), membership.workspace, **detail)


def _withdraw_invitations_by(membership: Membership) -> None:
    """Deletes the invitations of a person who is no longer an owner, who could otherwise return, or bring
    others, by one of them."""
    Invitation.objects.filter(workspace=membership.workspace, invited_by=membership.user).delete()
    InvitationLink.objects.filter(workspace=membership.workspace, invited_by=membership.user).delete()


def _keep_an_owner(membership: Membership) -> None:
    # Locks the rows of all owners, so that two owners cannot remove each other at the same moment.
    owners = Membership.objects.select_for_update().filter(workspace=membership.workspace, role=Role.OWNER)
    if [owner.pk for owner in owners] == [membership.pk]:
        raise PeopleError("role", f"{membership.user} is the only owner; make somebody else owner first")


@transaction.atomic
def _invite(who: Principal, user: User, role: Role) -> None:
    if user.password_is_one_time:
        # Whoever made the account knows its password, and could accept in the person's place.
        raise PeopleError(
            "username",
            f"{user} has not chosen a password of their own yet, and belongs to the workspace that made the "
            "account until then;"
            " ask them to sign in there first, or use another name",
        )
    _, is_new = Invitation.objects.get_or_create(
        workspace=who.workspace, user=user, defaults={"role": role, "invited_by": who.user}
    )
    if not is_new:
        raise PeopleError(
            "username", f"{user} is invited already; withdraw the invitation to offer another role"
        )
    access_changed(user)
    audit.record(who.user, "member.invited", user.get_username(), who.workspace, role=role)


@transaction.atomic
def _add_new(who: Principal, username: str, user: User | None, encoded: str, role: Role) -> User:
    """Makes a member of a new account, or of one that nobody has ever used, which gets a new one-time
    password."""
    if user is None:
        try:
            with transaction.atomic():
                user = User.objects.create(username=username, password=encoded, password_is_one_time=True)
        except IntegrityError as error:
            raise PeopleError("username", f"{username} was added a moment ago; see the list") from error
    elif not User.objects.filter(pk=user.pk, password_is_one_time=True, memberships=None).update(
        password=encoded
    ):
        raise PeopleError("username", f"{user} was added a moment ago; see the list")
    Membership.objects.create(workspace=who.workspace, user=user, role=role)
    audit.record(who.user, "member.added", user.get_username(), who.workspace, role=role, is_new=True)
    return user


def _is_unclaimed(user: User) -> bool:
    """Returns whether the account belongs to no workspace, and its person has never chosen a password."""
    return user.password_is_one_time and not Membership.objects.filter(user=user).exists()


def _check_name(username: str) -> None:
    try:
        UnicodeUsernameValidator()(username)
    except ValidationError as error:
        raise PeopleError("username", "use letters, digits and @ . + - _ only") from error

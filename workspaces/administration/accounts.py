"""What operators do with the accounts of this installation: make operators, deactivate, activate.

An installation always has an active operator, and a workspace that is not archived an active owner."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from workspaces import audit, tokens
from workspaces.access import access_changed
from workspaces.administration.errors import AdministrationError, require_person
from workspaces.authentication import sessions
from workspaces.models import Channel, Invitation, InvitationLink, Membership, PasswordLink, User
from workspaces.states import Role

# The reason that a person's notification channels show while the account is deactivated.
DEACTIVATED = "The account of this person was deactivated."


@transaction.atomic
def set_operator(who: User | str, user: User, *, is_operator: bool) -> bool:
    """Makes `user` an operator, or takes that away; returns False if nothing had to change. Raises
    AdministrationError for the only operator and for a deactivated account."""
    require_person(user)
    _lock_operators()
    current = User.objects.select_for_update().get(pk=user.pk)
    if current.is_operator == is_operator:
        return False
    if is_operator and not current.is_active:
        raise AdministrationError("user", f"{user} is deactivated; activate the account first")
    if not is_operator:
        _keep_an_operator(current)
    User.objects.filter(pk=user.pk).update(is_operator=is_operator)
    if not is_operator:
        # Only as an operator could they invite to workspaces that they do not own.
        owned = Membership.objects.filter(user=user, role=Role.OWNER).values("workspace_id")
        InvitationLink.objects.filter(invited_by=user).exclude(workspace_id__in=owned).delete()
    audit.record(who, "person.operator" if is_operator else "person.no_operator", user.get_username())
    access_changed(user)
    return True


@transaction.atomic
def deactivate(who: User | str, user: User) -> bool:
    """Ends every way in for a person: sign-in, sessions, open pages, API tokens, invitations and links.
    Returns False if the account is deactivated already. Memberships, runs and everything else that the person
    made remain. Raises AdministrationError for the only operator, and for the only owner of a workspace."""
    require_person(user)
    _lock_operators()
    current = User.objects.select_for_update().get(pk=user.pk)
    if not current.is_active:
        return False
    if current.is_operator:
        _keep_an_operator(current)
    _keep_owners(current)
    now = timezone.now()
    User.objects.filter(pk=user.pk).update(is_active=False, is_operator=False)
    sessions.end_all_sessions(user)
    tokens.revoke_all(user)
    PasswordLink.objects.filter(user=user).delete()
    Invitation.objects.filter(user=user).delete()
    Invitation.objects.filter(invited_by=user).delete()
    InvitationLink.objects.filter(invited_by=user).delete()
    # They would go on sending what happens here to the address of a person who has left.
    Channel.objects.filter(user=user, paused_at=None).update(paused_at=now, last_error=DEACTIVATED)
    audit.record(who, "person.deactivated", user.get_username())
    access_changed(user)
    return True


@transaction.atomic
def activate(who: User | str, user: User) -> bool:
    """Lets a person sign in again with their password and memberships; returns False if the account is
    active. Tokens, sessions and the operator's rights do not come back."""
    require_person(user)
    if not User.objects.filter(pk=user.pk, is_active=False).update(is_active=True):
        return False
    audit.record(who, "person.activated", user.get_username())
    return True


def _lock_operators() -> None:
    """Locks the rows of all operators, so that two of them cannot remove each other at the same moment."""
    list(User.objects.select_for_update().filter(is_operator=True).order_by("pk").values_list("pk"))


def _keep_an_operator(user: User) -> None:
    if not User.objects.filter(is_operator=True, is_active=True).exclude(pk=user.pk).exists():
        raise AdministrationError("user", f"{user} is the only operator; make somebody else operator first")


def _keep_owners(user: User) -> None:
    owned = Membership.objects.select_for_update().filter(
        user=user, role=Role.OWNER, workspace__archived_at=None
    )
    for membership in owned.select_related("workspace").order_by("workspace_id"):
        others = Membership.objects.filter(
            workspace=membership.workspace, role=Role.OWNER, user__is_active=True
        ).exclude(user=user)
        if not others.exists():
            raise AdministrationError(
                "user",
                f"{user} is the only owner of {membership.workspace}; make somebody else owner of it first",
            )

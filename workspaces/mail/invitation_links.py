"""Invitations to a workspace for people who may have no account yet: a link, shown to the inviting person or
sent by mail. Whoever opens it first chooses a user name and a password, or joins with the account with which
they are signed in."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.urls import reverse
from django.utils import timezone

from workspaces import audit
from workspaces.access import access_changed
from workspaces.authentication.token_text import digest, new_token
from workspaces.mail.errors import MailError
from workspaces.mail.mail_addresses import checked_address, person_with
from workspaces.models import InvitationLink, Membership, OutgoingMail, User, Workspace
from workspaces.states import MailKind, Role

PREFIX = "thi"
LIFETIME = timedelta(days=7)
# Invitations of one workspace that are open at the same time.
MAX_OPEN = 100


@transaction.atomic
def create_link(who: User | str, workspace: Workspace, role: Role) -> tuple[InvitationLink, str]:
    """Makes an invitation; returns it with its address, which is stored nowhere. Raises MailError."""
    invitation = _create(who, workspace, role)
    audit.record(who, "invitation.link_created", "a link", workspace, role=role)
    return invitation, new_address(invitation)


@transaction.atomic
def invite_address(who: User | str, workspace: Workspace, role: Role, text: str) -> InvitationLink:
    """Makes an invitation and has it sent to the mail address `text`. Raises MailError."""
    address = checked_address(text)
    if InvitationLink.objects.filter(workspace=workspace, address__iexact=address).exists():
        raise MailError("address", "is invited already; withdraw the invitation to send another")
    member = person_with(address)
    if member is not None and Membership.objects.filter(workspace=workspace, user=member).exists():
        raise MailError("address", f"is that of {member}, who is a member already")
    invitation = _create(who, workspace, role, address)
    OutgoingMail.objects.create(kind=MailKind.INVITE, recipient=address, invitation=invitation)
    audit.record(who, "invitation.mailed", address, workspace, role=role)
    return invitation


def new_address(invitation: InvitationLink) -> str:
    """Returns the address of a new link of this invitation, instead of an earlier one."""
    text = new_token(PREFIX)
    InvitationLink.objects.filter(pk=invitation.pk).update(digest=digest(text))
    return f"{settings.PUBLIC_URL}{reverse('invitation-link', args=[text])}"


def find_invitation(text: str) -> InvitationLink | None:
    """Returns the invitation whose link has this text; None if it is unknown, used, withdrawn or expired, or
    its workspace is archived."""
    valid = InvitationLink.objects.filter(expires_at__gt=timezone.now(), workspace__archived_at=None)
    return valid.select_related("workspace", "invited_by").filter(digest=digest(text)).first()


def accept(user: User, invitation: InvitationLink) -> Membership | None:
    """Makes an existing person a member; a member keeps their role. Returns None if the link was used or
    withdrawn meanwhile."""
    with transaction.atomic():
        if not _use(invitation):
            return None
        return _join(user, invitation)


def accept_as_new(invitation: InvitationLink, username: str, password: str) -> User | None:
    """Makes an account and its membership. A mailed link proves that the address is the person's. Returns
    None if the link was used or withdrawn meanwhile. Raises MailError if the name is not to be had, and
    HashingBusy."""
    username = User.normalize_username(username)
    check_username(username)
    # Before the transaction: hashing takes time, and may have to wait for its turn.
    encoded = make_password(password)
    try:
        with transaction.atomic():
            if not _use(invitation):
                return None
            email = "" if person_with(invitation.address) else invitation.address
            user = User.objects.create(username=username, password=encoded, email=email)
            audit.record(user, "person.created", username, by_invitation_of=invitation.maker)
            _join(user, invitation)
    except IntegrityError as error:
        raise MailError("username", f"{username} was taken a moment ago; choose another name") from error
    return user


def check_username(username: str) -> None:
    """Raises MailError if a new account cannot have this user name."""
    try:
        UnicodeUsernameValidator()(username)
    except ValidationError as error:
        raise MailError("username", "use letters, digits and @ . + - _ only") from error
    if User.objects.filter(username__iexact=username).exists():
        raise MailError(
            "username", "somebody here has this name already; choose another, or sign in if it is yours"
        )


@transaction.atomic
def withdraw(who: User, invitation: InvitationLink) -> bool:
    """Ends an invitation; returns False if it is used or withdrawn already."""
    if not InvitationLink.objects.filter(pk=invitation.pk).delete()[0]:
        return False
    audit.record(who, "invitation.withdrawn", invitation.address or "a link", invitation.workspace)
    return True


def delete_expired() -> None:
    """Deletes invitations that can no longer be accepted."""
    InvitationLink.objects.filter(expires_at__lte=timezone.now()).delete()


def _create(who: User | str, workspace: Workspace, role: Role, address: str = "") -> InvitationLink:
    # Locked, so that an archived workspace gets none, and two requests do not pass the limit together.
    current = Workspace.objects.select_for_update().get(pk=workspace.pk)
    if current.archived_at is not None:
        raise MailError("workspace", "is archived; an operator can restore it")
    if InvitationLink.objects.filter(workspace=workspace).count() >= MAX_OPEN:
        raise MailError("workspace", f"has {MAX_OPEN} open invitations; withdraw one first")
    return InvitationLink.objects.create(
        workspace=workspace,
        role=role,
        address=address,
        invited_by=who if isinstance(who, User) else None,
        maker=who if isinstance(who, str) else who.get_username(),
        expires_at=timezone.now() + LIFETIME,
    )


def _use(invitation: InvitationLink) -> bool:
    # Who deletes the row has used the link: a second request, or a withdrawal meanwhile, finds none.
    return bool(InvitationLink.objects.filter(pk=invitation.pk, digest=invitation.digest).delete()[0])


def _join(user: User, invitation: InvitationLink) -> Membership:
    membership, _ = Membership.objects.get_or_create(
        workspace=invitation.workspace, user=user, defaults={"role": invitation.role}
    )
    access_changed(user)
    audit.record(
        user,
        "invitation.accepted",
        user.get_username(),
        invitation.workspace,
        role=membership.role,
        invited_by=invitation.maker,
    )
    return membership

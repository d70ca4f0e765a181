"""A new password by mail, for a person who has forgotten theirs.

Whoever asks learns nothing about who has an account: the request is stored as it was typed, the answer is
always the same, and the worker finds out later whether there is somebody to write to."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from workspaces.administration import password_links
from workspaces.authentication import login_throttle
from workspaces.authentication.confirmation import has_password
from workspaces.mail.mail_addresses import person_with
from workspaces.models import OutgoingMail, PasswordLink, User
from workspaces.states import MailKind, MailState

PURPOSE = "password reset"
LIFETIME = timedelta(hours=1)
# Mails to one person within an hour, whoever asks for them.
MAX_AN_HOUR = 3
# The longest mail address; a user name is shorter.
MAX_LENGTH = 254


def request_reset(name: str, client_address: str) -> None:
    """Asks for a mail to the person with this user name or mail address. Raises TooManyAttempts."""
    login_throttle.count_attempt(name, client_address, purpose=PURPOSE)
    OutgoingMail.objects.create(kind=MailKind.RESET, recipient=name[:MAX_LENGTH])


def person_to_write_to(mail: OutgoingMail) -> User | None:
    """Returns the active person whom a request means, by mail address or else by user name; None if there is
    none with a confirmed address, or they have had enough mails."""
    user = person_with(mail.recipient) or User.objects.filter(username=mail.recipient).first()
    if user is None or not user.is_active or not user.email:
        return None
    if not has_password(user):
        # Who comes by a provider must not keep a way in that the provider does not know of.
        return None
    since = timezone.now() - timedelta(hours=1)
    sent = OutgoingMail.objects.filter(
        kind=MailKind.RESET, user=user, state=MailState.SENT, sent_at__gt=since
    )
    return None if sent.count() >= MAX_AN_HOUR else user


def mailed_link(user: User) -> tuple[PasswordLink, str]:
    """Returns a new link for a new password with its address. Replaces one that was mailed earlier, never one
    that an operator has made. Raises AdministrationError for a deactivated account."""
    return password_links.create_link(user, user, lifetime=LIFETIME, is_by_mail=True)

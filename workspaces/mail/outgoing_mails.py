"""Sends the mails of the hub itself: links to confirm an address, for a new password and for invitations, and
notices that a way to sign in has changed, or that data of old runs will be removed.

The worker makes each link at the moment at which it sends it. A mail that the server does not accept is tried
again, with a new link, for an hour."""

from __future__ import annotations

import logging
import threading
from datetime import datetime, timedelta

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from workspaces.administration.errors import AdministrationError
from workspaces.authentication.token_text import digest, new_token
from workspaces.mail import invitation_links, mail_addresses, password_reset
from workspaces.models import MailConfirmation, OutgoingMail, User
from workspaces.notifications.channels import has_mail
from workspaces.notifications.email_message import send_now
from workspaces.notifications.errors import NotSent
from workspaces.security_notices import notices
from workspaces.states import MailKind, MailState

log = logging.getLogger(__name__)
MAX_EACH_TICK = 20
# A mail that a worker has claimed is due again after this time, in case the worker has died.
CLAIM = timedelta(seconds=60)
GIVE_UP_AFTER = timedelta(hours=1)
PAUSES_S = (10, 30, 60, 120, 300)
RETENTION = timedelta(days=2)
FOOTER = "This mail comes from TrainHub at {url}. If you did not expect it, you can ignore it."
_ticking = threading.Lock()


class NothingToSend(Exception):
    """There is nobody to write to, or the reason for the mail is gone."""


def tick(now: datetime) -> int:
    """Sends what is due; returns how many mails were sent. Returns 0 at once while another tick of this
    process runs."""
    if not has_mail() or not _ticking.acquire(blocking=False):
        return 0
    try:
        return _tick(now)
    finally:
        _ticking.release()


def forget(now: datetime) -> None:
    """Deletes old mails, among them what people have typed who have no account here."""
    OutgoingMail.objects.filter(created_at__lt=now - RETENTION).delete()


def _tick(now: datetime) -> int:
    due = OutgoingMail.objects.filter(state=MailState.WAITING, try_at__lte=now)
    sent = 0
    for mail in due.order_by("try_at", "pk")[:MAX_EACH_TICK]:
        # The condition is part of the UPDATE: of two workers that read the same row only one changes it.
        if not due.filter(pk=mail.pk).update(try_at=now + CLAIM, tries=mail.tries + 1):
            continue
        try:
            sent += _send(mail)
        except NotSent as error:
            _try_later(mail, error)
            if error.is_away:
                break  # the server answers nobody else either
    return sent


def _send(mail: OutgoingMail) -> bool:
    """Sends one mail; returns False if there was nothing to send. Raises NotSent."""
    try:
        with transaction.atomic():
            message = _compose(mail)
        # Behind the transaction: the mail server may take long.
        send_now(message)
    except (NothingToSend, AdministrationError) as nothing:
        _end(mail, MailState.FAILED, str(nothing))
        return False
    _end(mail, MailState.SENT)
    return True


def _end(mail: OutgoingMail, state: MailState, error: str = "") -> None:
    sent_at = timezone.now() if state is MailState.SENT else None
    OutgoingMail.objects.filter(pk=mail.pk).update(
        state=state, sent_at=sent_at, last_error=error[:300], user=mail.user
    )


def _try_later(mail: OutgoingMail, error: NotSent) -> None:
    log.warning("A mail of the kind %s could not be sent: %s", mail.kind, error)
    now = timezone.now()
    if error.is_permanent or mail.created_at < now - GIVE_UP_AFTER:
        _end(mail, MailState.FAILED, str(error))
        return
    pause_s = PAUSES_S[min(mail.tries, len(PAUSES_S) - 1)]
    OutgoingMail.objects.filter(pk=mail.pk).update(
        try_at=now + timedelta(seconds=pause_s), last_error=str(error)[:300]
    )


def _compose(mail: OutgoingMail) -> EmailMessage:
    compose = {
        MailKind.CONFIRM: _confirmation,
        MailKind.CHANGED: _changed,
        MailKind.RESET: _reset,
        MailKind.INVITE: _invitation,
        MailKind.SECURITY: _security,
        MailKind.RETENTION: _retention,
    }[MailKind(mail.kind)]
    return compose(mail)


def _confirmation(mail: OutgoingMail) -> EmailMessage:
    confirmation = MailConfirmation.objects.filter(user=mail.user, address=mail.recipient).first()
    if confirmation is None or mail.user is None or not mail.user.is_active:
        raise NothingToSend("the request is gone")
    text = new_token(mail_addresses.PREFIX)
    MailConfirmation.objects.filter(pk=confirmation.pk).update(digest=digest(text))
    return _message(
        mail.recipient,
        "Confirm your mail address",
        f"{mail.user} wants to use this mail address. To confirm it, open this link within a day:",
        f"{settings.PUBLIC_URL}{reverse('mail-confirm', args=[text])}",
    )


def _changed(mail: OutgoingMail) -> EmailMessage:
    return _message(
        mail.recipient,
        "Your mail address was changed",
        f"The account {mail.user} no longer has this mail address. If that was not you, ask an operator of "
        "the installation for a link for a new password.",
    )


def _reset(mail: OutgoingMail) -> EmailMessage:
    user: User | None = password_reset.person_to_write_to(mail)
    if user is None:
        raise NothingToSend("nobody to write to")
    mail.user = user
    _, address = password_reset.mailed_link(user)
    return _message(
        user.email,
        "A new password",
        f"Somebody has asked for a new password for {user}. To choose one, open this link within an hour. "
        "It works once. Your password stays as it is if you do not use it.",
        address,
    )


def _invitation(mail: OutgoingMail) -> EmailMessage:
    invitation = mail.invitation
    if invitation is None or invitation.expires_at <= timezone.now():
        raise NothingToSend("the invitation is gone")
    days = invitation_links.LIFETIME.days
    return _message(
        mail.recipient,
        f"Invitation to {invitation.workspace}",
        f"{invitation.maker} invites you to the workspace {invitation.workspace} as {invitation.role}. To "
        f"accept, open this link within {days} days. It works once.",
        invitation_links.new_address(invitation),
    )


def _security(mail: OutgoingMail) -> EmailMessage:
    return _message(mail.recipient, notices.subject_of(mail), *notices.paragraphs_of(mail))


def _retention(mail: OutgoingMail) -> EmailMessage:
    return _message(
        mail.recipient,
        "Data of old runs will be removed",
        mail.detail,
        f"What it would remove now, and how to cancel it: {settings.PUBLIC_URL}/retention/. Pinned runs, and "
        "those with the tag keep, stay whole.",
    )


def _message(recipient: str, subject: str, *paragraphs: str) -> EmailMessage:
    # Names of workspaces come from people; a header must stay one line.
    line = " ".join(f"TrainHub: {subject}".split())
    body = "\n\n".join((*paragraphs, FOOTER.format(url=settings.PUBLIC_URL)))
    return EmailMessage(line, f"{body}\n", to=[recipient])

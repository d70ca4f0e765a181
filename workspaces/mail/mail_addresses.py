"""A person's own mail address: requested on the page of the profile, and theirs when a link that was sent to
it is opened. No two people have the same, whatever its case."""

from __future__ import annotations

from datetime import timedelta

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.utils import timezone

from workspaces import audit
from workspaces.authentication.token_text import digest
from workspaces.mail.errors import MailError
from workspaces.models import MailConfirmation, OutgoingMail, User
from workspaces.notifications.channels import has_mail
from workspaces.states import MailKind

PREFIX = "thm"
LIFETIME = timedelta(days=1)
# Mails that one person may have sent to addresses in a day: anybody can be the owner of a typed address.
MAX_A_DAY = 5
MAX_LENGTH = 254
NO_MAIL = "cannot be used: this hub sends no mail; an operator can set EMAIL_URL"
TAKEN = "belongs to somebody else here; use another, or ask an operator"


def checked_address(text: str) -> str:
    """Returns a mail address without space around it. Raises MailError, also if this hub sends no mail."""
    if not has_mail():
        raise MailError("address", NO_MAIL)
    address = text.strip()
    try:
        validate_email(address)
    except ValidationError as error:
        raise MailError("address", "must be a mail address such as ada@example.org") from error
    if len(address) > MAX_LENGTH:
        raise MailError("address", f"must have at most {MAX_LENGTH} characters")
    # SQLite compares letters outside ASCII with their case, which a domain may contain.
    local, _, domain = address.rpartition("@")
    return f"{local}@{domain.lower()}"


def person_with(address: str) -> User | None:
    """Returns whoever has confirmed this mail address."""
    return User.objects.filter(email__iexact=address).first() if address else None


@transaction.atomic
def request_address(user: User, text: str) -> MailConfirmation:
    """Has a link sent to the address `text`, which makes it the address of `user`. An earlier link stops
    working. Raises MailError."""
    address = checked_address(text)
    # Locked, so that two requests at the same moment do not pass the limit together.
    current = User.objects.select_for_update().get(pk=user.pk)
    if address == current.email:
        raise MailError("address", "is yours already")
    other = person_with(address)
    if other is not None and other.pk != user.pk:
        raise MailError("address", TAKEN)
    since = timezone.now() - timedelta(days=1)
    mails = OutgoingMail.objects.filter(user=user, kind=MailKind.CONFIRM, created_at__gt=since)
    if mails.count() >= MAX_A_DAY:
        raise MailError("address", f"was changed {MAX_A_DAY} times today; try again tomorrow")
    MailConfirmation.objects.filter(user=user).delete()
    confirmation = MailConfirmation.objects.create(
        user=user, address=address, expires_at=timezone.now() + LIFETIME
    )
    # It counts after the confirmation is gone, too, so it does not depend on its row.
    OutgoingMail.objects.create(kind=MailKind.CONFIRM, recipient=address, user=user)
    audit.record(user, "mail.requested", user.get_username(), address=address)
    return confirmation


def find_confirmation(text: str) -> MailConfirmation | None:
    """Returns what the link with this text confirms; None if it is unknown, used, expired or replaced, or its
    person is deactivated."""
    valid = MailConfirmation.objects.filter(expires_at__gt=timezone.now(), user__is_active=True)
    return valid.select_related("user").filter(digest=digest(text)).first()


def confirm_address(confirmation: MailConfirmation) -> bool:
    """Makes the address that of its person, and has the earlier address told. Returns False if the link was
    used or replaced meanwhile. Raises MailError if somebody else has got the address."""
    user = confirmation.user
    try:
        with transaction.atomic():
            # Who deletes the row uses the link.
            valid = MailConfirmation.objects.filter(pk=confirmation.pk, digest=confirmation.digest)
            if not valid.delete()[0]:
                return False
            before = User.objects.select_for_update().get(pk=user.pk).email
            User.objects.filter(pk=user.pk).update(email=confirmation.address)
            _notify_earlier(user, before, confirmation.address)
            audit.record(user, "mail.confirmed", user.get_username(), address=confirmation.address)
    except IntegrityError as error:
        raise MailError("address", TAKEN) from error
    return True


@transaction.atomic
def remove_address(user: User) -> None:
    """Deletes the person's address, and a link that would confirm another one."""
    before = User.objects.select_for_update().get(pk=user.pk).email
    MailConfirmation.objects.filter(user=user).delete()
    if before:
        User.objects.filter(pk=user.pk).update(email="")
        _notify_earlier(user, before, "")
        audit.record(user, "mail.removed", user.get_username(), address=before)


def delete_expired() -> None:
    """Deletes requests whose link can no longer be used."""
    MailConfirmation.objects.filter(expires_at__lte=timezone.now()).delete()


def _notify_earlier(user: User, before: str, address: str) -> None:
    """Has the earlier address told, so that nobody loses the way to a new password unnoticed."""
    if before and before.lower() != address.lower() and has_mail():
        OutgoingMail.objects.create(kind=MailKind.CHANGED, recipient=before, user=user)

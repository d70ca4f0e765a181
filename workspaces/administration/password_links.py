"""Links by which a person chooses a new password without knowing the old one.

An operator makes one for a person who cannot sign in, on the page of people or by `manage.py person`; or
the person has one sent to their mail address. A link works once, for a day (by mail: an hour); a newer link
of the same person and way replaces it. Only its SHA-256 is stored."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from workspaces import audit
from workspaces.access import access_changed
from workspaces.administration.errors import AdministrationError, require_person
from workspaces.authentication import sessions
from workspaces.authentication.token_text import digest, new_token
from workspaces.models import PasswordLink, User
from workspaces.security_notices.notices import notify_person
from workspaces.states import SignInChange

PREFIX = "thp"
LIFETIME = timedelta(days=1)


@transaction.atomic
def create_link(
    who: User | str, user: User, *, lifetime: timedelta = LIFETIME, is_by_mail: bool = False
) -> tuple[PasswordLink, str]:
    """Creates a link for `user` and returns it with its address, which is stored nowhere. Earlier links of
    the person stop working; one by mail replaces only those by mail, because anybody can ask for it. `who`:
    the operator who asked for it, or a name such as "command line". Raises AdministrationError for an account
    that is deactivated."""
    require_person(user)
    if not User.objects.select_for_update().filter(pk=user.pk, is_active=True).exists():
        raise AdministrationError("user", f"{user} is deactivated; activate the account first")
    earlier = PasswordLink.objects.filter(user=user)
    (earlier.filter(is_by_mail=True) if is_by_mail else earlier).delete()
    text = new_token(PREFIX)
    link = PasswordLink.objects.create(
        user=user,
        digest=digest(text),
        expires_at=timezone.now() + lifetime,
        is_by_mail=is_by_mail,
    )
    audit.record(who, "password.link_mailed" if is_by_mail else "password.link_created", user.get_username())
    return link, f"{settings.PUBLIC_URL}{reverse('password-link', args=[text])}"


def find_link(text: str) -> PasswordLink | None:
    """Returns the link with this text; None if it is unknown, used or expired, or its person is
    deactivated."""
    valid = PasswordLink.objects.filter(expires_at__gt=timezone.now(), user__is_active=True)
    return valid.select_related("user").filter(digest=digest(text)).first()


def use_link(link: PasswordLink, password: str) -> bool:
    """Sets the password of the link's person, ends all their sessions, and uses the link up. Returns False if
    it was used or replaced meanwhile. Raises HashingBusy.

    API tokens remain valid: the link proves nothing against the programs that use them."""
    # Before the transaction: hashing takes time, and may have to wait for its turn.
    encoded = make_password(password)
    with transaction.atomic():
        # Who deletes the row uses the link.
        if not PasswordLink.objects.filter(pk=link.pk, expires_at__gt=timezone.now()).delete()[0]:
            return False
        PasswordLink.objects.filter(user=link.user_id).delete()
        User.objects.filter(pk=link.user_id).update(password=encoded, password_is_one_time=False)
        sessions.end_all_sessions(link.user)
        audit.record(link.user, "password.changed_by_link", link.user.get_username())
        notify_person(link.user, SignInChange.PASSWORD, "with a link for a new password")
        access_changed(link.user)
    return True


def delete_expired() -> None:
    """Deletes links that can no longer be used."""
    PasswordLink.objects.filter(expires_at__lte=timezone.now()).delete()

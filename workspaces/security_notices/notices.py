"""Tells people by mail that a way in which they sign in has changed, so that nobody loses an account
unnoticed.

The mail is a row of the transaction that makes the change; the worker sends it afterwards, as any other."""

from __future__ import annotations

from django.conf import settings

from workspaces.models import OutgoingMail, User
from workspaces.states import MailKind, SignInChange

MAX_DETAIL = 200
WORDS = {
    SignInChange.PASSKEY_ADDED: "a passkey was added",
    SignInChange.PASSKEY_REMOVED: "a passkey was removed",
    SignInChange.APP_ADDED: "an app with codes was added",
    SignInChange.APP_REMOVED: "the app with codes was removed",
    SignInChange.FACTORS_RESET: "the second factor was taken away",
    SignInChange.RECOVERY_CODES: "new recovery codes were made, and earlier ones no longer work",
    SignInChange.PASSWORD: "the password was changed",
    SignInChange.CONNECTED: "an account of another service was connected",
    SignInChange.DISCONNECTED: "an account of another service was disconnected",
}


def notify_person(user: User, change: SignInChange, detail: str = "") -> None:
    """Has the person told, if the hub sends mail and they have a confirmed address. `detail`: what exactly,
    such as the name of a passkey."""
    if not settings.EMAIL_URL:
        return
    # What the caller holds may be older than the address.
    address = User.objects.filter(pk=user.pk).values_list("email", flat=True).first()
    if address:
        OutgoingMail.objects.create(
            kind=MailKind.SECURITY,
            recipient=address,
            user=user,
            topic=change,
            detail=" ".join(detail.split())[:MAX_DETAIL],
        )


def subject_of(mail: OutgoingMail) -> str:
    words = WORDS[SignInChange(mail.topic)].partition(",")[0]
    return f"{words[:1].upper()}{words[1:]}"


def paragraphs_of(mail: OutgoingMail) -> tuple[str, ...]:
    """Returns the text of the mail: what has changed and when, and what to do if it was somebody else."""
    words = WORDS[SignInChange(mail.topic)]
    detail = f" ({mail.detail})" if mail.detail else ""
    return (
        f"On {mail.created_at:%Y-%m-%d at %H:%M} UTC this changed for {mail.user}: {words}{detail}.",
        "If that was you, there is nothing to do. If it was not, sign in, end all other sessions and change "
        f"your password under {settings.PUBLIC_URL}/settings/, or ask an operator of the installation for "
        "help at once.",
    )

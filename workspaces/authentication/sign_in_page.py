"""What the sign-in page tells, whoever renders it."""

from __future__ import annotations

from django.conf import settings


def sign_in_context() -> dict[str, object]:
    return {
        "sends_mail": bool(settings.EMAIL_URL),
        "has_passwords": settings.SIGN_IN.has_passwords,
        "provider": settings.SIGN_IN.oidc.name if settings.SIGN_IN.oidc.issuer else "",
    }

"""Passkeys (WebAuthn) as a second factor. Loaded on first use: the library takes memory."""

from __future__ import annotations

import binascii
import json
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from webauthn import (
    generate_authentication_options,
    generate_registration_options,
    options_to_json,
    verify_authentication_response,
    verify_registration_response,
)
from webauthn.helpers import base64url_to_bytes, bytes_to_base64url
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from workspaces import audit
from workspaces.authentication.factors.relying_party import relying_party
from workspaces.models import Passkey, User
from workspaces.security_notices.notices import notify_person
from workspaces.states import SignInChange

NAME = "TrainHub"


def creation_options(user: User) -> tuple[str, str]:
    """Returns the options for a browser that is to make a passkey, as JSON, and their challenge."""
    options = generate_registration_options(
        rp_id=relying_party(),
        rp_name=NAME,
        user_name=user.get_username(),
        # Says nothing about the person, and is the same for all their passkeys.
        user_id=f"trainhub-{user.pk}".encode(),
        user_display_name=user.full_label,
        exclude_credentials=_descriptors(user),
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.DISCOURAGED,
            user_verification=UserVerificationRequirement.PREFERRED,
        ),
    )
    return options_to_json(options), bytes_to_base64url(options.challenge)


@transaction.atomic
def add(user: User, name: str, credential: str, challenge: str) -> bool:
    """Stores the passkey that a browser has made; returns False if its answer is not right."""
    try:
        verified = verify_registration_response(
            credential=credential,
            expected_challenge=base64url_to_bytes(challenge),
            expected_rp_id=relying_party(),
            expected_origin=settings.PUBLIC_URL,
        )
    except (WebAuthnException, ValueError, TypeError, KeyError, binascii.Error):
        return False
    _, is_new = Passkey.objects.get_or_create(
        credential_id=bytes_to_base64url(verified.credential_id),
        defaults={
            "user": user,
            "name": name,
            "public_key": bytes_to_base64url(verified.credential_public_key),
            "sign_count": verified.sign_count,
        },
    )
    if is_new:
        audit.record(user, "factor.added", user.get_username(), kind="passkey", name=name)
        notify_person(user, SignInChange.PASSKEY_ADDED, name)
    return is_new


def request_options(user: User) -> tuple[str, str]:
    """Returns the options for a browser that is to prove a passkey of the person, as JSON, and their
    challenge."""
    options = generate_authentication_options(rp_id=relying_party(), allow_credentials=_descriptors(user))
    return options_to_json(options), bytes_to_base64url(options.challenge)


def accept_answer(user: User, credential: str, challenge: str) -> bool:
    """Returns whether a browser has proved one of the person's passkeys."""
    passkey = Passkey.objects.filter(user=user, credential_id=_credential_id(credential)).first()
    if passkey is None:
        return False
    try:
        verified = verify_authentication_response(
            credential=credential,
            expected_challenge=base64url_to_bytes(challenge),
            expected_rp_id=relying_party(),
            expected_origin=settings.PUBLIC_URL,
            credential_public_key=base64url_to_bytes(passkey.public_key),
            credential_current_sign_count=passkey.sign_count,
        )
    except (WebAuthnException, ValueError, TypeError, KeyError, binascii.Error):
        return False
    # The count that was checked is part of the condition: of two answers at the same moment one counts.
    same = Passkey.objects.filter(pk=passkey.pk, sign_count=passkey.sign_count)
    return bool(same.update(sign_count=verified.new_sign_count, last_used_at=timezone.now()))


def _descriptors(user: User) -> list[PublicKeyCredentialDescriptor]:
    identifiers = Passkey.objects.filter(user=user).values_list("credential_id", flat=True)
    return [PublicKeyCredentialDescriptor(id=base64url_to_bytes(text)) for text in identifiers]


def _credential_id(credential: str) -> str:
    try:
        answer: Any = json.loads(credential)
    except (ValueError, RecursionError):
        return ""
    identifier = answer.get("id") if isinstance(answer, dict) else None
    # NUL would be an error of PostgreSQL.
    return identifier if isinstance(identifier, str) and "\x00" not in identifier else ""

"""Which certificates of hubs are trusted, and what to do about one that is not."""

from __future__ import annotations

import ssl
import time

from trainhub_sdk.errors import NoProfile

# Codes of OpenSSL for a certificate that is not valid yet, or not any more.
OUT_OF_TIME = (9, 10)


def tls_context(ca: str) -> ssl.SSLContext:
    """Returns a context that trusts the authority in the file `ca`, or those of this machine. Raises
    NoProfile."""
    try:
        return ssl.create_default_context(cafile=ca or None)
    except OSError as error:
        raise NoProfile(
            f"The authority of the hub cannot be read from {ca}: {error}. Put the file back, or sign in "
            "again: trainhub login --ca FILE"
        ) from error


def explain_refusal(error: ssl.SSLCertVerificationError) -> str:
    """Returns why a certificate is not trusted, and the remedy."""
    remedy = "for a hub with an authority of its own sign in with --ca FILE"
    if error.verify_code in OUT_OF_TIME:
        remedy = (
            f"by the clock of this machine it is {time.strftime('%Y-%m-%d %H:%M')}: correct the clock, or "
            "ask the operator for a new certificate"
        )
    return f"its certificate does not hold ({error.verify_message}); {remedy}"

"""For which host name this hub's passkeys are."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from django.conf import settings


def relying_party() -> str:
    """Returns the host name of PUBLIC_URL."""
    return urlsplit(settings.PUBLIC_URL).hostname or ""


def passkey_obstacle() -> str:
    """Returns why browsers make no passkeys for this hub, as a sentence, or ""."""
    host = relying_party()
    try:
        ipaddress.ip_address(host)
    except ValueError:
        is_local = host == "localhost" or host.endswith(".localhost")
        return "" if settings.BEHIND_TLS or is_local else "Browsers make passkeys over HTTPS only."
    return f"Browsers make passkeys for host names only, and this hub's address is {host} (PUBLIC_URL)."

"""Pages that show a secret, perhaps only once."""

from __future__ import annotations

from django.http import HttpResponse

# no-transform: neither the hub nor a proxy compresses the page, whose size would depend on the secret.
NEVER_STORED = "no-store, no-transform"


def never_store(response: HttpResponse) -> None:
    """Tells browsers and proxies to keep no copy of the page."""
    response.headers["Cache-Control"] = NEVER_STORED

"""The page to which a form's action returns."""

from __future__ import annotations

from django.http import HttpRequest
from django.utils.http import url_has_allowed_host_and_scheme


def return_address(request: HttpRequest, default: str) -> str:
    """Returns the address in the field `next`, or `default`; never one of another site."""
    target = request.POST.get("next", "")
    is_local = target.startswith("/") and url_has_allowed_host_and_scheme(target, allowed_hosts=None)
    return target if is_local else default

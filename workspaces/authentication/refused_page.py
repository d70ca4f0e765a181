"""The sign-in page of an attempt that has to wait, without Django's stack.

Rendering it for each attempt would be most of what an attack costs the hub. So the page is rendered once,
with marks where a visitor's own text belongs."""

from __future__ import annotations

import re
import secrets
from functools import cache

from django.core.exceptions import ValidationError
from django.template.loader import render_to_string
from django.utils.html import escape
from starlette.responses import HTMLResponse

from workspaces.authentication.delays import AuthenticationDelayed
from workspaces.authentication.sign_in_page import sign_in_context
from workspaces.forms import SignInForm

# Random, so that no visitor's text contains one.
_NAME, _NEXT, _MESSAGE, _CSRF = (f"mark{secrets.token_hex(16)}" for _ in range(4))
_MARKS = re.compile("|".join((_NAME, _NEXT, _MESSAGE, _CSRF)))
# A token of Django's forms. Whoever sends another one has not opened the page.
_TOKEN = re.compile(r"[a-zA-Z0-9]{32,64}")
HEADERS = {
    "Cache-Control": "max-age=0, no-cache, no-store, must-revalidate, private",
    "X-Frame-Options": "DENY",
}


class _RefusedForm(SignInForm):
    """The form after an attempt that was not compared with anything."""

    def clean(self) -> dict[str, object]:
        raise ValidationError(_MESSAGE, code="delayed")


def refused_sign_in(form: dict[str, str], delay: AuthenticationDelayed) -> HTMLResponse:
    """Returns the page for the fields of a sent form. It gives back the form's own CSRF token, which stays
    valid, and leaves the password empty."""
    token = form.get("csrfmiddlewaretoken", "")
    texts = {
        _NAME: form.get("username", ""),
        _NEXT: form.get("next", ""),
        _MESSAGE: delay.message,
        _CSRF: token if _TOKEN.fullmatch(token) else "",
    }
    page = _MARKS.sub(lambda match: escape(texts[match[0]]), _marked_page())
    return HTMLResponse(page, 429, {**HEADERS, "Retry-After": str(delay.retry_after_s)})


@cache
def _marked_page() -> str:
    form = _RefusedForm(data={"username": _NAME, "password": _NAME}, label_suffix="")
    return render_to_string(
        "workspaces/sign_in.html", {**sign_in_context(), "form": form, "next": _NEXT, "csrf_token": _CSRF}
    )

"""Adds security headers to every answer, whichever part of the hub makes it: Django, raw routes, MLflow's
protocol, static files.

Headers of the answer itself are not replaced: previews of users' files have a stricter policy of their
own."""

from __future__ import annotations

from django.conf import settings
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trainhub import OLDEST_SDK_VERSION, __version__

Header = tuple[bytes, bytes]

# No page of ours holds inline scripts, event handlers or style attributes, so none is allowed.
PAGE_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'; object-src 'none'"
)
# For everything that is no page: should a browser show it anyway, it loads nothing and stands in no frame.
DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"

NO_SNIFFING: Header = (b"x-content-type-options", b"nosniff")
OWN_ORIGIN: Header = (b"cross-origin-resource-policy", b"same-origin")
ON_PAGES: tuple[Header, ...] = (
    NO_SNIFFING,
    OWN_ORIGIN,
    (b"content-security-policy", PAGE_POLICY.encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (
        b"permissions-policy",
        b"camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
    (b"referrer-policy", b"same-origin"),
)
ON_DATA: tuple[Header, ...] = (NO_SNIFFING, OWN_ORIGIN, (b"content-security-policy", DATA_POLICY.encode()))
# Without an own-origin rule: the sandboxed frame of a figure has no origin, and loads Plotly from here.
ON_STATIC: tuple[Header, ...] = (NO_SNIFFING,)
PRIVATE: Header = (b"cache-control", b"private, no-cache")
# The SDK says which of both is older when a request fails (trainhub_sdk/connection/versions.py).
VERSION: Header = (b"x-trainhub-version", f"{__version__}; oldest-sdk={OLDEST_SDK_VERSION}".encode())
API, NODE_API = "/api/v1/", "/api/v1/node/"
VARIES_BY = (b"Cookie", b"Authorization", b"Accept-Encoding")


class AnswerHeaders:
    """Completes the headers of every HTTP answer of `app`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        seconds = settings.HSTS_SECONDS if settings.BEHIND_TLS else 0
        self._always: tuple[Header, ...] = ()
        if seconds:
            self._always = ((b"strict-transport-security", b"max-age=%d" % seconds),)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_read = scope["method"] in ("GET", "HEAD")
        is_static = scope["path"].startswith(settings.STATIC_URL)
        is_api = scope["path"].startswith(API) and not scope["path"].startswith(NODE_API)

        async def complete(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = self._missing([*message.get("headers", ())], is_read=is_read, is_static=is_static)
                message = {**message, "headers": [*added, VERSION] if is_api else added}
            await send(message)

        await self._app(scope, receive, complete)

    def _missing(self, headers: list[Header], *, is_read: bool, is_static: bool) -> list[Header]:
        """Returns `headers` with the security headers that they lack."""
        present = {name.lower(): value for name, value in headers}
        is_page = present.get(b"content-type", b"").startswith(b"text/html")
        if is_page:
            defaults = ON_PAGES
        elif is_static:
            defaults = ON_STATIC
        else:
            # Whatever is not read is answered to a program: the fewer bytes the better where thousands log.
            defaults = ON_DATA if is_read else (NO_SNIFFING,)
        headers += [header for header in (*defaults, *self._always) if header[0] not in present]
        if is_static or not (is_read or is_page):
            return headers
        if PRIVATE[0] not in present:
            headers.append(PRIVATE)
        return _varied(headers, present.get(b"vary"))


def _varied(headers: list[Header], vary: bytes | None) -> list[Header]:
    """Returns `headers` with a `Vary` that names everything on which an answer may depend: who requests it,
    and its compression."""
    if vary == b"*":
        return headers
    named = [word.strip() for word in (vary or b"").split(b",") if word.strip()]
    names = {word.lower() for word in named}
    named += [word for word in VARIES_BY if word.lower() not in names]
    return [*(header for header in headers if header[0].lower() != b"vary"), (b"vary", b", ".join(named))]

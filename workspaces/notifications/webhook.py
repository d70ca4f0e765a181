"""Sends a POST with strict limits: a time limit for all of it, no redirects, and nothing is read but the
status."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import ssl
import time
from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import httpx
from django.conf import settings

from workspaces.notifications.errors import NotSent
from workspaces.notifications.url_policy import UrlError, Way, check_url, way

log = logging.getLogger(__name__)
WITHIN_S = 5.0
AGENT = "TrainHub"


async def send(url: str, secret: str, body: Mapping[str, Any], delivery: int) -> None:
    """Sends the message to a webhook. Raises NotSent."""
    try:
        async with asyncio.timeout(WITHIN_S):
            status = await _post(url, secret, json.dumps(body).encode(), delivery)
    except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, OSError) as error:
        # What is closed, silent or no web server looks the same from outside, or webhooks would be a way to
        # scan ports.
        log.info(
            "Delivery %s could not be delivered to %s: %s",
            delivery,
            urlsplit(url).hostname,
            _error_text(error),
        )
        raise NotSent(
            f"Could not be delivered within {WITHIN_S:.0f} s; the worker's log says why.", is_away=True
        ) from error
    if 300 <= status < 400:
        raise NotSent(
            f"Answered {status}, a redirect, and redirects are not followed; enter its target instead."
        )
    if not 200 <= status < 300:
        raise NotSent(
            f"Answered {status} {_phrase(status)}.".replace(" .", "."), is_permanent=status == HTTPStatus.GONE
        )


def signature(secret: str, at: str, body: bytes) -> str:
    """Returns the signature of a message. The receiver computes the same, to verify its origin and its
    time."""
    return "sha256=" + hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()


async def _post(url: str, secret: str, body: bytes, delivery: int) -> int:
    proxy = settings.WEBHOOK_PROXY or None
    there = _by_proxy(url) if proxy else await way(url)
    at = str(int(time.time()))
    headers = {
        "Host": there.host_header,
        "Content-Type": "application/json",
        "User-Agent": AGENT,
        "X-TrainHub-Delivery": str(delivery),
        "X-TrainHub-Timestamp": at,
    }
    if secret:
        headers["X-TrainHub-Signature"] = signature(secret, at, body)
    extensions = {"sni_hostname": there.host}
    # Not the environment's proxies: where webhooks go is for this installation's settings to say.
    async with (
        httpx.AsyncClient(
            verify=_trust(), trust_env=False, proxy=proxy, timeout=WITHIN_S, follow_redirects=False
        ) as client,
        client.stream("POST", there.url, content=body, headers=headers, extensions=extensions) as response,
    ):
        return response.status_code


def _by_proxy(url: str) -> Way:
    """Returns how to reach `url` through WEBHOOK_PROXY. The proxy resolves names, and decides which addresses
    may be reached."""
    try:
        parts = check_url(url)
    except UrlError as error:
        raise NotSent(f"The address {error}.", is_away=True) from error
    return Way(url, parts.hostname or "", parts.netloc)


@cache
def _trust() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)


def _error_text(error: Exception) -> str:
    text = str(error).rstrip(".") or type(error).__name__
    return text[:200]


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""

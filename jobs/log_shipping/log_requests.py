"""Requests to a log system, and what its answers mean for the lines."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from http import HTTPStatus
from types import TracebackType
from urllib.parse import urlsplit

import httpx
from django.conf import settings
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse

from jobs.log_shipping.destinations import OTLP, Destination
from jobs.log_shipping.encodings import CONTENT_TYPES, encode
from jobs.log_shipping.line_reader import SourceLine
from workspaces.notifications.errors import NotSent
from workspaces.notifications.url_policy import UrlError, Way, check_url, way

log = logging.getLogger(__name__)
WITHIN_S = 10.0
# Of an answer nothing is shown but the beginning.
MAX_ANSWER_BYTES = 16 * 1024
MAX_REASON_CHARS = 200
# To read the authorities of a machine takes longer than a request.
MAX_CONTEXTS = 32
MAX_RETRY_AFTER_S = 3600.0
# Answers about this request alone: the same lines in other requests may be accepted.
REFUSALS = frozenset({400, 413, 422})
REMEDIES = {
    401: "the log system does not accept the token; check the headers",
    403: "the log system does not let this token write logs; check the headers",
    404: "there is no log system at this path; check the address and the kind",
    405: "there is no log system at this path; check the address and the kind",
    415: "the log system speaks another protocol; check the kind",
    429: "the log system wants fewer lines for now",
}


class TargetUnavailable(Exception):
    """The log system took nothing, and may take the same later. `retry_after_s`: when it wants to be tried
    again; None = it did not say."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after_s = retry_after_s


class LinesRefused(Exception):
    """The log system will never accept a request with these lines."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class LogConnection:
    """A connection to a log system, which is used again for further requests. `hub`: the name of this hub."""

    def __init__(self, destination: Destination, hub: str) -> None:
        self._destination = destination
        self._hub = hub
        self._way: Way | None = None
        # A time limit for the whole of a request, and not for each of its parts, needs an event loop.
        self._runner = asyncio.Runner()
        self._client = httpx.AsyncClient(
            verify=_trust(destination.ca, is_guarded=destination.is_guarded),
            # People of a workspace reach what webhooks reach, and by the same proxy.
            trust_env=not destination.is_guarded,
            proxy=(settings.WEBHOOK_PROXY or None) if destination.is_guarded else None,
            timeout=WITHIN_S,
            follow_redirects=False,
        )

    def __enter__(self) -> LogConnection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()

    def send(self, lines: Sequence[SourceLine]) -> tuple[int, str]:
        """Returns how many of the lines the log system has left out, and why. Raises TargetUnavailable and
        LinesRefused."""
        body = encode(lines, self._destination, self._hub)
        try:
            response, answer = self._runner.run(self._post(body))
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, OSError) as error:
            raise TargetUnavailable(_connection_error(error, self._destination)) from error
        return self._judge(response, answer)

    async def _post(self, body: bytes) -> tuple[httpx.Response, bytes]:
        answer = b""
        async with asyncio.timeout(WITHIN_S):
            there = await self._resolve()
            headers = {
                **self._destination.headers,
                "Host": there.host_header,
                "Content-Type": CONTENT_TYPES[self._destination.kind],
                "Content-Encoding": "gzip",
                # A short answer could unpack to a very long one.
                "Accept-Encoding": "identity",
                "User-Agent": f"TrainHub/{settings.TRAINHUB_VERSION}",
            }
            extensions = {"sni_hostname": there.host}
            async with self._client.stream(
                "POST", there.url, content=body, headers=headers, extensions=extensions
            ) as response:
                async for part in response.aiter_raw():
                    answer += part
                    if len(answer) >= MAX_ANSWER_BYTES:
                        break
                return response, answer[:MAX_ANSWER_BYTES]

    async def _resolve(self) -> Way:
        """Returns how to reach the log system. The address of a workspace's is looked up once for each
        connection, so that it cannot lead elsewhere after the check."""
        if self._way is None:
            url = self._destination.url
            parts = urlsplit(url)
            is_direct = self._destination.is_guarded and not settings.WEBHOOK_PROXY
            try:
                if self._destination.is_guarded:
                    check_url(url)
                self._way = await way(url) if is_direct else Way(url, parts.hostname or "", parts.netloc)
            except UrlError as error:
                raise TargetUnavailable(f"The address {error}.") from error
            except NotSent as error:
                raise TargetUnavailable(error.message) from error
        return self._way

    def _judge(self, response: httpx.Response, answer: bytes) -> tuple[int, str]:
        status = response.status_code
        if 200 <= status < 300:
            return _drops_in(answer) if self._destination.kind == OTLP else (0, "")
        reason = f"Answered {status} {_phrase(status)}".strip()
        text = _text(response, answer)
        if text and self._destination.is_guarded:
            # It may be the answer of another program in the hub's network, which is for operators alone.
            log.info("%s answered %d: %s", self._destination.host, status, text)
        elif text:
            reason += f": {text}"
        if status in REFUSALS:
            raise LinesRefused(reason)
        if 300 <= status < 400:
            reason = (
                f"Answered {status}, a redirect, and redirects are not followed; enter its target instead"
            )
        remedy = f": {REMEDIES[status]}" if status in REMEDIES else ""
        raise TargetUnavailable(f"{reason}{remedy}.", _retry_after_s(response.headers.get("Retry-After", "")))


@lru_cache(MAX_CONTEXTS)
def _trust(ca: str, *, is_guarded: bool) -> ssl.SSLContext:
    if not ca:
        return httpx.create_ssl_context(trust_env=not is_guarded)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=ca)
    return context


def _drops_in(answer: bytes) -> tuple[int, str]:
    """Returns what the answer of a collector says of lines that it has dropped; they must not come again."""
    try:
        partial = ExportLogsServiceResponse.FromString(answer).partial_success
    except DecodeError:
        # Some collectors answer with JSON or a word.
        return 0, ""
    return max(0, partial.rejected_log_records), _one_line(partial.error_message)


def _connection_error(error: Exception, destination: Destination) -> str:
    log.info(
        "Lines could not be sent to %s: %s", destination.host, _one_line(str(error)) or type(error).__name__
    )
    if destination.is_guarded:
        # The same sentence for a closed port, a silent one and one that speaks something else, or targets
        # would be a way to scan ports.
        return (
            f"{destination.host} could not be reached, or speaks something else; the worker's log says why."
        )
    if isinstance(error, (TimeoutError, httpx.TimeoutException)):
        return f"{destination.host} did not answer within {WITHIN_S:.0f} s."
    return f"{destination.host} could not be reached: {_one_line(str(error)) or type(error).__name__}."


def _text(response: httpx.Response, answer: bytes) -> str:
    is_text = not response.headers.get("Content-Type", "").startswith("application/x-protobuf")
    return _one_line(answer.decode("utf-8", "replace")) if is_text else ""


def _one_line(text: str) -> str:
    words = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return words[:MAX_REASON_CHARS].rstrip(".")


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _retry_after_s(text: str) -> float | None:
    """Returns the seconds that the header Retry-After names, as a number or as a date."""
    try:
        seconds = float(text) if text.strip().isdigit() else _seconds_until(text)
    except ValueError:
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER_S)


def _seconds_until(date: str) -> float:
    at = parsedate_to_datetime(date)
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return (at - datetime.now(UTC)).total_seconds()

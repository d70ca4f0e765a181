"""Requests to a hub over HTTP, with the standard library alone.

Connections are kept and shared between threads. A request is sent again only where that is safe: if it
changes nothing, if it carries an idempotency key, or if it never reached the hub."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from typing import IO, Any, Union
from urllib.parse import urlsplit

from trainhub_sdk import __version__
from trainhub_sdk.addresses import encode_query, find_proxy, request_target, split_hub_address
from trainhub_sdk.connection.certificates import tls_context
from trainhub_sdk.connection.network_errors import NotSent, describe
from trainhub_sdk.connection.versions import HEADER, UNKNOWN_REQUEST, HubVersion, parse_header, version_note
from trainhub_sdk.errors import ConnectionBroken, HubUnreachable, NoProfile, refusal

Json = Any
Body = Union[bytes, IO[bytes]]
TIMEOUT_S = 30.0
# So long a request that may be repeated is repeated.
RETRY_S = 30.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 4.0
# Web servers close idle connections after 5 s, perhaps just as one is used again.
IDLE_S = 3.0
PIECE_BYTES = 256 * 1024
# Of an answer that is read whole.
MAX_ANSWER_BYTES = 256 * 1024 * 1024
SAFE = ("GET", "HEAD", "PUT", "DELETE")
OVERLOADED = (429, 502, 503, 504)
FIRST_ERROR = 400


class Answer:
    """An answer of the hub whose body has not been read yet. `close` or read it to its end."""

    def __init__(
        self, response: http.client.HTTPResponse, address: str, release: Callable[[bool], None]
    ) -> None:
        self.status = response.status
        self.reason = response.reason
        self.headers = response.headers
        self._response = response
        self._address = address
        self._release: Callable[[bool], None] | None = release

    def pieces(self) -> Iterator[bytes]:
        """Yields the body. Raises ConnectionBroken."""
        while True:
            try:
                piece = self._response.read(PIECE_BYTES)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                raise ConnectionBroken(self._address, describe(error)) from error
            if not piece:
                break
            yield piece
        if (self._response.length or 0) > 0:
            self.close()
            raise ConnectionBroken(self._address, "its answer ended too early")
        self._finish(reusable=not self._response.will_close)

    def read(self) -> bytes:
        body = bytearray()
        for piece in self.pieces():
            body += piece
            if len(body) > MAX_ANSWER_BYTES:
                self.close()
                raise ConnectionBroken(self._address, "its answer is too large")
        return bytes(body)

    def json(self) -> Json:
        return json.loads(self.read())

    def close(self) -> None:
        self._finish(reusable=False)

    def _finish(self, *, reusable: bool) -> None:
        release, self._release = self._release, None
        if release is not None:
            release(reusable)


class ApiConnection:
    """Requests to the hub at `url`, in the name of `token`. `ca`: a file with the only authority to trust;
    "" = those of this machine. `retry_s`: how long a request that may be repeated is repeated.
    `hub_version`: as its answers say. `reads_from_store`: whether files may be read from the hub's object
    store, False once that has failed."""

    def __init__(self, url: str, token: str = "", ca: str = "", retry_s: float = RETRY_S) -> None:
        parts = split_hub_address(url)
        if not (token.isascii() and token.isprintable()):
            raise NoProfile("The token has characters that no token has. Sign in again: trainhub login")
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._parts = parts
        self._base = parts.path.rstrip("/")
        self.hub_version = HubVersion()
        self.reads_from_store = True
        self._clock_difference = timedelta()
        self._token = token
        self._ca = ca
        self._retry_s = retry_s
        self._context = tls_context(ca) if parts.scheme == "https" else None
        self._proxy = find_proxy(parts.scheme, parts.hostname or "")
        self._idle: list[tuple[float, http.client.HTTPConnection]] = []
        self._lock = threading.Lock()

    def get(self, path: str, **query: Any) -> Json:
        """Returns the JSON at `path`. Raises HubUnreachable and HubRefused."""
        return self.call("GET", path, query=query)

    def pages(self, path: str, **query: Any) -> Iterator[dict[str, Any]]:
        """Yields the rows of a list, which the hub gives whole or in pages. Raises HubUnreachable and
        HubRefused."""
        answer = self.get(path, **query)
        while isinstance(answer, dict):
            yield from answer["results"]
            if not answer.get("next"):
                return
            answer = self.get(answer["next"])
        yield from answer

    def call(
        self,
        method: str,
        path: str,
        data: Json = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Json:
        """Sends `data` as JSON. Returns the JSON of the answer, None if that is empty. Raises HubUnreachable
        and HubRefused."""
        sent = dict(headers or {})
        body = None
        if data is not None:
            body = json.dumps(data, allow_nan=False).encode()
            sent["Content-Type"] = "application/json"
        content = self.open(method, path, query=query, body=body, headers=sent).read()
        return json.loads(content) if content else None

    def open(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Body | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT_S,
    ) -> Answer:
        """Sends a request, again for a time if that is safe. Returns the answer as soon as it begins. Raises
        HubUnreachable, and HubRefused for an error."""
        target = request_target(path, self._base)
        if parameters := encode_query(query or {}):
            target += ("&" if "?" in target else "?") + parameters
        sent = dict(headers or {})
        may_repeat = (method in SAFE or "Idempotency-Key" in sent) and not hasattr(body, "read")
        end, pause = time.monotonic() + self._retry_s, FIRST_PAUSE_S
        while True:
            try:
                answer = self._send(method, target, body, sent, timeout)
            except NotSent as error:
                # Nothing has reached the hub, but a body that is a stream may have been read.
                reason, again = str(error), not error.is_lasting and not hasattr(body, "read")
            except (OSError, http.client.HTTPException) as error:
                reason, again = describe(error), may_repeat
            else:
                if answer.status not in OVERLOADED or not may_repeat or time.monotonic() + pause > end:
                    return self._checked(answer)
                pause = max(pause, _retry_after(answer))
                answer.close()
                reason, again = f"it answers {answer.status}", True
            if not again or time.monotonic() + pause > end:
                way = f" (through the proxy {self._proxy.host}:{self._proxy.port})" if self._proxy else ""
                raise HubUnreachable(self.url, reason + way)
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)

    def open_whole(self, address: str, headers: Mapping[str, str], timeout: float) -> Answer:
        """Sends a GET to an address as it is, once. Raises as `open`."""
        parts = urlsplit(address)
        try:
            answer = self._send("GET", f"{parts.path}?{parts.query}", None, headers, timeout)
        except (NotSent, OSError, http.client.HTTPException) as error:
            raise HubUnreachable(self.url, describe(error)) from error
        return self._checked(answer)

    def _checked(self, answer: Answer) -> Answer:
        """Returns the answer unless it is an error. Raises HubRefused."""
        if header := answer.headers.get(HEADER):
            self.hub_version = parse_header(header)
        # A proxy may send another date, or none.
        with suppress(TypeError, ValueError, IndexError):
            self._clock_difference = parsedate_to_datetime(answer.headers["Date"]) - datetime.now(
                timezone.utc
            )
        if answer.status < FIRST_ERROR:
            return answer
        body, title = {}, answer.reason
        try:
            body = json.loads(answer.read())
        except (ValueError, ConnectionBroken):
            # An error page of a proxy, or another server: its status says what there is to say.
            answer.close()
            title = f"{title}; is {self.url} the address of a hub?"
        is_unknown = answer.status in UNKNOWN_REQUEST
        note = version_note(self.hub_version, self.url, self._ca) if is_unknown else ""
        raise refusal(answer.status, title, body if isinstance(body, dict) else {}, note)

    def now(self) -> datetime:
        """Returns the time by the clock of the hub, exact to a second; before an answer by that of this
        machine."""
        return datetime.now(timezone.utc) + self._clock_difference

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def _send(
        self, method: str, target: str, body: Body | None, headers: Mapping[str, str], timeout: float
    ) -> Answer:
        connection = self._connection(timeout)
        if self._token:
            headers = {"Authorization": f"Bearer {self._token}", **headers}
        if self._proxy and self._context is None:
            target = f"http://{self._parts.netloc}{target}"
            headers = {**headers, **self._proxy.headers}
        try:
            connection.request(method, target, body, {"User-Agent": f"trainhub-sdk/{__version__}", **headers})
            response = connection.getresponse()
        except BaseException:
            connection.close()
            raise

        def release(reusable: bool) -> None:
            if not reusable:
                connection.close()
                return
            with self._lock:
                self._idle.append((time.monotonic(), connection))

        return Answer(response, self.url, release)

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        """Returns one that is open. Raises NotSent."""
        while True:
            with self._lock:
                since, connection = self._idle.pop() if self._idle else (0.0, None)
            if connection is None:
                break
            if time.monotonic() - since < IDLE_S and connection.sock is not None:
                connection.sock.settimeout(timeout)
                return connection
            connection.close()
        connection = self._new_connection(timeout)
        try:
            connection.connect()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise NotSent(error) from error
        return connection

    def _new_connection(self, timeout: float) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if not self._proxy:
            if self._context is None:
                return http.client.HTTPConnection(host, port, timeout=timeout)
            return http.client.HTTPSConnection(host, port, timeout=timeout, context=self._context)
        proxy = self._proxy
        if self._context is None:
            return http.client.HTTPConnection(proxy.host, proxy.port, timeout=timeout)
        connection = http.client.HTTPSConnection(
            proxy.host, proxy.port, timeout=timeout, context=self._context
        )
        connection.set_tunnel(host, port or 443, proxy.headers)
        return connection


def _retry_after(answer: Answer) -> float:
    text = answer.headers.get("Retry-After") or ""
    return float(text) if text.isdigit() else 0.0

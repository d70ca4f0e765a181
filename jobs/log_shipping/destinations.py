"""Where log lines are shipped to, and the checks of what people write about that.

No Django here: the settings import this module."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

OTLP, LOKI = "otlp", "loki"
KINDS = (OTLP, LOKI)
# What is added to an address that does not end with it.
PATHS = {OTLP: "/v1/logs", LOKI: "/loki/api/v1/push"}
ENDS = {OTLP: "/v1/logs", LOKI: "/push"}
# What every line says by itself; nobody may say something else under these names.
OWN_LABELS = frozenset({"service_name", "hub", "workspace", "stream"})
MAX_LABELS = 8  # Loki accepts 15 labels by default, and four are our own
MAX_LABEL_CHARS = 100
MAX_HEADERS = 16
MAX_URL_CHARS = 1000
DEFAULT_MAX_LINE_BYTES = 64 * 1024
# Loki accepts lines of 256 KiB by default.
MIN_LINE_BYTES, MAX_LINE_BYTES = 1024, 256 * 1024
LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,62}\Z")
HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}\Z")
# The request has its own.
REFUSED_HEADERS = frozenset(
    {"host", "content-length", "content-type", "content-encoding", "transfer-encoding", "connection"}
)


class DestinationError(ValueError):
    """Lines cannot be shipped to what was written. `field`: url, kind, headers, labels or ca."""

    def __init__(self, field_name: str, message: str) -> None:
        super().__init__(message)
        self.field = field_name
        self.message = message


@dataclass(frozen=True)
class Destination:
    """A log system. `headers` may hold secrets. `labels`: added to every line. `ca`: authorities of its
    certificate, in PEM; "" = those that the machine trusts. `is_guarded`: named by people of a workspace, so
    only addresses are reached that webhooks may reach."""

    kind: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    labels: Mapping[str, str] = field(default_factory=dict)
    ca: str = ""
    max_line_bytes: int = DEFAULT_MAX_LINE_BYTES
    is_guarded: bool = False

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc


def parse_url(kind: str, text: str) -> str:
    """Returns the full address of a log system of this kind. Raises DestinationError."""
    text = text.strip()
    try:
        parts: SplitResult = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise DestinationError("url", "is not an address") from error
    is_plain = text.isprintable() and " " not in text and len(text) <= MAX_URL_CHARS and port != 0
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
        raise DestinationError("url", "must be an http:// or https:// address")
    if parts.username is not None or parts.password is not None:
        raise DestinationError(
            "url", "must not hold a user and a password; send a header such as Authorization instead"
        )
    if parts.fragment:
        raise DestinationError("url", "must not have a part after #")
    path = parts.path.rstrip("/")
    if not path.endswith(ENDS[kind]):
        path += PATHS[kind]
    return parts._replace(path=path).geturl()


def parse_kind(text: str) -> str:
    kind = text.strip().lower()
    if kind not in KINDS:
        raise DestinationError("kind", f"must be one of {', '.join(KINDS)}")
    return kind


def parse_headers(text: str) -> dict[str, str]:
    """Returns the headers in `text`, one `Name: value` a line. Raises DestinationError, whose message has no
    value: it may be secret."""
    headers: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not colon or not HEADER.match(name) or not value:
            raise DestinationError("headers", f"line {number} must be like Authorization: Bearer TOKEN")
        if not (value.isascii() and value.isprintable()):
            raise DestinationError("headers", f"the value of {name} must be printable ASCII")
        if name.lower() in REFUSED_HEADERS:
            raise DestinationError("headers", f"{name} is set by the hub itself; remove it")
        headers[name] = value
    if len(headers) > MAX_HEADERS:
        raise DestinationError("headers", f"may be at most {MAX_HEADERS}")
    return headers


def parse_labels(text: str) -> dict[str, str]:
    """Returns the labels in `text`, such as `env=prod, site=north`. Raises DestinationError."""
    labels: dict[str, str] = {}
    for item in text.replace("\n", ",").split(","):
        if not item.strip():
            continue
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not LABEL.match(name) or not value:
            raise DestinationError("labels", f"{item.strip()[:80]} must be like env=prod")
        if name in OWN_LABELS or name.startswith("__"):
            raise DestinationError("labels", f"{name} is a name that the hub or the log system uses itself")
        if len(value) > MAX_LABEL_CHARS or not value.isprintable():
            raise DestinationError(
                "labels", f"{name} may have at most {MAX_LABEL_CHARS} printable characters"
            )
        labels[name] = value
    if len(labels) > MAX_LABELS:
        raise DestinationError("labels", f"may be at most {MAX_LABELS}")
    return labels


def parse_ca(text: str) -> str:
    """Returns the certificates in `text`. Raises DestinationError if there is none, or one cannot be read."""
    text = text.strip()
    if text:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
        except (ssl.SSLError, ValueError) as error:
            raise DestinationError(
                "ca", "must be certificates in PEM, beginning with -----BEGIN CERTIFICATE-----"
            ) from error
    return text

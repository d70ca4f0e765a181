"""The settings that name the log system of all runs' logs (SHIP_LOGS_TO)."""

from __future__ import annotations

from pathlib import Path

from jobs.log_shipping import destinations
from jobs.log_shipping.destinations import Destination, DestinationError
from trainhub import env

_VARIABLES = {
    "url": "SHIP_LOGS_TO",
    "kind": "SHIP_LOGS_KIND",
    "headers": "SHIP_LOGS_HEADERS",
    "labels": "SHIP_LOGS_LABELS",
    "ca": "SHIP_LOGS_CA",
}


def hub_destination() -> Destination | None:
    """Returns where the lines of all runs go; None if nowhere. Raises EnvError."""
    url = env.text("SHIP_LOGS_TO", "").strip()
    if not url:
        return None
    try:
        kind = destinations.parse_kind(env.text("SHIP_LOGS_KIND", destinations.OTLP))
        return Destination(
            kind,
            destinations.parse_url(kind, url),
            # Services and containers often have their variables from files without line ends in values.
            destinations.parse_headers(env.secret("SHIP_LOGS_HEADERS").replace(";", "\n")),
            destinations.parse_labels(env.text("SHIP_LOGS_LABELS", "")),
            destinations.parse_ca(_ca()),
            line_bytes(),
        )
    except DestinationError as error:
        raise env.EnvError(f"{_VARIABLES[error.field]} {error.message}") from error


def line_bytes() -> int:
    """Returns the length in bytes beyond which a line comes in pieces. Raises EnvError."""
    default, most = destinations.DEFAULT_MAX_LINE_BYTES, destinations.MAX_LINE_BYTES
    size = env.integer("SHIP_LOGS_LINE_BYTES", default, least=destinations.MIN_LINE_BYTES)
    if size > most:
        raise env.EnvError(f"SHIP_LOGS_LINE_BYTES={size} must be at most {most}")
    return size


def _ca() -> str:
    path = env.text("SHIP_LOGS_CA", "")
    if not path:
        return ""
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise env.EnvError(f"SHIP_LOGS_CA={path} cannot be read: {error}") from error
    if not text.strip():
        raise env.EnvError(f"SHIP_LOGS_CA={path} is empty")
    return text

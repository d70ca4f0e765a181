"""Readers of environment variables by type. A wrong value raises EnvError."""

from __future__ import annotations

import os
import re
from math import inf
from pathlib import Path
from urllib.parse import urlsplit

# A century. Times that lie further back than all dates cannot be computed with.
MOST_DAYS = 36_500


class EnvError(Exception):
    """The value of a variable cannot be used. The message names the variable and the remedy."""


def text(name: str, default: str) -> str:
    return os.environ.get(name, default)


def secret(name: str, default: str = "") -> str:
    """Returns the value of the variable `name`, or the content of the file that the variable `name`_FILE
    names. Raises EnvError if that file cannot be read."""
    path = os.environ.get(f"{name}_FILE")
    if not path:
        return os.environ.get(name, default)
    try:
        return Path(path).read_text().strip()
    except OSError as error:
        raise EnvError(f"{name}_FILE={path} cannot be read: {error.strerror}") from error


def boolean(name: str, default: bool) -> bool:
    value = os.environ.get(name)
    if value is None:
        return default
    if value.lower() in ("1", "true", "yes", "on"):
        return True
    if value.lower() in ("0", "false", "no", "off", ""):
        return False
    raise EnvError(f"{name}={value} must be one of 1, 0, true, false, yes, no, on, off")


def choice(name: str, default: str, allowed: tuple[str, ...]) -> str:
    value = os.environ.get(name, default).upper()
    if value not in allowed:
        raise EnvError(f"{name}={value} must be one of {', '.join(allowed)}")
    return value


def number(name: str, default: float, *, least: float = 0, most: float = inf) -> float:
    value = os.environ.get(name)
    if value is None:
        return default
    try:
        out = float(value)
    except ValueError as error:
        raise EnvError(f"{name}={value} must be a number") from error
    # Written this way round so that NaN, which compares as False, is refused.
    if not out >= least:
        raise EnvError(f"{name}={value} must be at least {least:g}")
    if out == inf:
        raise EnvError(f"{name}={value} must be a finite number")
    if out > most:
        raise EnvError(f"{name}={value} must be at most {most:g}")
    return out


def integer(name: str, default: int, *, least: int = 0, most: float = inf) -> int:
    out = number(name, default, least=least, most=most)
    if out != int(out):
        raise EnvError(f"{name}={out} must be a whole number")
    return int(out)


def split_words(name: str, default: str = "") -> list[str]:
    """Returns the items of a comma-separated list, without empty ones."""
    return [item.strip() for item in os.environ.get(name, default).split(",") if item.strip()]


def folder(name: str, default: Path) -> Path:
    return Path(os.environ.get(name) or default).expanduser().resolve()


def image_registry(name: str) -> str:
    """Returns the address of a registry, HOST[:PORT][/FOLDER], or "" if the variable is not set."""
    value = os.environ.get(name, "").strip().strip("/")
    if value and not re.fullmatch(r"[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[a-z0-9._-]+)*", value):
        raise EnvError(f"{name}={value} must be HOST[:PORT][/FOLDER], such as registry.example.org/mirror")
    return value


def server_name(name: str) -> str:
    """Returns the name of one of several servers, which is also that of a folder; "" if it is not set."""
    value = os.environ.get(name, "")
    if value and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", value):
        raise EnvError(f"{name}={value} must be letters, digits, dots, dashes and underscores, such as web-1")
    return value


def url_of_kind(name: str, url: str, kinds: tuple[str, ...]) -> str:
    """Returns `url` if it is empty or its scheme is one of `kinds`. Raises EnvError otherwise, without the
    rest of the URL, which may contain a password."""
    if url and url.partition("://")[0] not in kinds:
        raise EnvError(f"{name} must start with one of {', '.join(f'{kind}://' for kind in kinds)}")
    return url


def web_url(name: str, text: str) -> str:
    """Returns `text`, the value of the variable `name`, without a slash at its end. Raises EnvError unless it
    is empty or an http or https address without a path."""
    value = text.rstrip("/")
    parts = urlsplit(value)
    if value and (parts.scheme not in ("http", "https") or not parts.hostname or parts.path):
        raise EnvError(f"{name}={value} must be like https://trainhub.example.org, without a path")
    return value

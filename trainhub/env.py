"""Typed readers of environment variables that fail loudly."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit


class EnvError(Exception):
    """A variable has a value that cannot be used; the message names it and the remedy."""


def text(name: str, default: str) -> str:
    return os.environ.get(name, default)


def secret(name: str, default: str = "") -> str:
    """The value of NAME, or the content of the file that NAME_FILE names."""
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


def number(name: str, default: float, *, least: float = 0) -> float:
    value = os.environ.get(name)
    if value is None:
        return default
    try:
        out = float(value)
    except ValueError as error:
        raise EnvError(f"{name}={value} must be a number") from error
    if not out >= least:
        raise EnvError(f"{name}={value} must be at least {least:g}")
    return out


def integer(name: str, default: int, *, least: int = 0) -> int:
    out = number(name, default, least=least)
    if out != int(out):
        raise EnvError(f"{name}={out} must be a whole number")
    return int(out)


def words(name: str, default: str = "") -> list[str]:
    """A comma-separated list, empty items dropped."""
    return [item.strip() for item in os.environ.get(name, default).split(",") if item.strip()]


def folder(name: str, default: Path) -> Path:
    return Path(os.environ.get(name) or default).expanduser().resolve()


def url_of_kind(name: str, url: str, kinds: tuple[str, ...]) -> str:
    """`url` where it is empty or of a known kind. The message leaves out the rest of it, which may hold a
    password."""
    if url and url.partition("://")[0] not in kinds:
        raise EnvError(f"{name} must start with one of {', '.join(f'{kind}://' for kind in kinds)}")
    return url


def web_url(name: str, given: str) -> str:
    """The address `given` in the variable `name`, without a slash at its end; "" where none is given."""
    value = given.rstrip("/")
    parts = urlsplit(value)
    if value and (parts.scheme not in ("http", "https") or not parts.hostname or parts.path):
        raise EnvError(f"{name}={value} must be like https://trainhub.example.org, without a path")
    return value

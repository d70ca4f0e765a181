"""The addresses of conda channels, and which of them the hub may ask."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from django.conf import settings

from environments.indexes.index_policy import IndexRefused, check_index

DEFAULT_CHANNEL = "conda-forge"
# What conda means by `defaults`.
DEFAULTS = ("https://repo.anaconda.com/pkgs/main", "https://repo.anaconda.com/pkgs/r")
MAX_URL_LENGTH = 500
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*){0,3}\Z")
_TOKEN = re.compile(r"(^|/)t/[^/]+/")
_PLAIN = re.compile(r"[!-~]+\Z")


def channel_urls(text: str) -> tuple[str, ...]:
    """Returns the addresses of a channel that a file names. Raises ValueError with a sentence."""
    if text == "defaults":
        return DEFAULTS
    if _NAME.match(text):
        return (f"{channel_alias()}/{text}",)
    if len(text) > MAX_URL_LENGTH or not _PLAIN.match(text):
        raise ValueError(f"the address of a channel must have at most {MAX_URL_LENGTH} plain characters")
    try:
        parts = urlsplit(text)
        has_port = parts.port != 0
    except ValueError as error:
        raise ValueError(f"{text!r:.100} is not the address of a channel; check its port") from error
    if parts.scheme == "file" and not parts.netloc and parts.path.startswith("/"):
        return (text.rstrip("/"),)
    if parts.scheme not in ("http", "https") or not parts.hostname or not has_port:
        raise ValueError(
            f"{text!r:.100} is not a channel; write its name, such as conda-forge, or an address that begins "
            "with https://"
        )
    if "@" in parts.netloc or _TOKEN.search(parts.path):
        raise ValueError(
            "the address of a channel must not hold a user, a password or a token, which everybody here "
            "could read; name a mirror that needs none"
        )
    if parts.query or parts.fragment:
        raise ValueError("the address of a channel must have no '?' and no '#'; remove what follows it")
    return (text.rstrip("/"),)


def channel_alias() -> str:
    """Returns the address below which channels have their names."""
    return str(settings.CONDA_CHANNEL_ALIAS).rstrip("/")


def file_error(url: str) -> str:
    """Returns why the folder that a `file://` address names cannot be a channel, "" if it can."""
    if not url.startswith("file:"):
        return ""
    path = Path(unquote(urlsplit(url).path)).resolve()
    folders = [Path(folder).resolve() for folder in settings.CONDA_CHANNEL_FOLDERS]
    if any(path == folder or folder in path.parents for folder in folders):
        return ""
    return (
        f"{url} is not in a folder for channels; choose a channel with https://, or ask an operator to add "
        "the folder (CONDA_CHANNEL_FOLDERS)"
    )


def check_channels(urls: Iterable[str]) -> None:
    """Raises IndexRefused if the hub may not ask one of the channels."""
    for url in urls:
        if url.startswith("file:"):
            if sentence := file_error(url):
                raise IndexRefused(sentence)
        # The operator has named this one.
        elif not url.startswith(f"{channel_alias()}/"):
            check_index(url)

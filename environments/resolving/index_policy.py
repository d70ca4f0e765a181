"""Decides which package indexes that people name the hub may ask."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from django.conf import settings

from workspaces.notifications.addresses import may_reach

PORTS = {"http": 80, "https": 443}


class IndexRefused(Exception):
    """The hub does not ask this index; the message is a sentence for the person who named it."""


def check_index(url: str) -> None:
    """Raises IndexRefused if the hub may not ask the index at `url`, whose form has been checked."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
    listed = settings.PACKAGE_INDEX_HOSTS
    if listed and host not in listed:
        raise IndexRefused(
            f"{host} is not one of the package indexes that this installation uses; choose one of "
            f"{', '.join(listed)}, or ask an operator to add it (PACKAGE_INDEX_HOSTS)"
        )
    check_address(host, port)


def check_address(host: str, port: int) -> None:
    """Raises IndexRefused if the hub may not connect to the host, which is an index or has files of one."""
    listed = settings.PACKAGE_INDEX_HOSTS
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise IndexRefused(f"The name {host} of the index is not known; check its spelling") from error
    if not all(may_reach(str(item[4][0]), host, port, listed) for item in addresses):
        raise IndexRefused(
            f"The index {host} is at an address that the hub does not connect to; an operator can add a host "
            "of this machine with PACKAGE_INDEX_HOSTS"
        )

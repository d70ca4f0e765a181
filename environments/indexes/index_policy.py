"""Decides which package indexes and image registries that people name the hub may ask."""

from __future__ import annotations

import socket
from collections.abc import Collection
from urllib.parse import urlsplit

from django.conf import settings

from workspaces.notifications.addresses import may_reach

PORTS = {"http": 80, "https": 443}


class IndexRefused(Exception):
    """The hub does not ask this index; the message is a sentence for the person who named it."""


class HostRefused(Exception):
    """The hub does not connect to this host. `is_unknown`: because no address is known for its name."""

    def __init__(self, *, is_unknown: bool) -> None:
        super().__init__()
        self.is_unknown = is_unknown


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
        permitted_addresses(host, port, listed)
    except HostRefused as error:
        if error.is_unknown:
            raise IndexRefused(f"The name {host} of the index is not known; check its spelling") from error
        raise IndexRefused(
            f"The index {host} is at an address that the hub does not connect to; an operator can add a host "
            "of this machine with PACKAGE_INDEX_HOSTS"
        ) from error


def permitted_addresses(host: str, port: int, listed_hosts: Collection[str]) -> list[str]:
    """Returns the IP addresses of the host, at each of which the hub may connect to this port. Raises
    HostRefused. `listed_hosts`: those that the installation lists for this purpose."""
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise HostRefused(is_unknown=True) from error
    addresses = [str(item[4][0]) for item in infos]
    if not all(may_reach(address, host, port, listed_hosts) for address in addresses):
        raise HostRefused(is_unknown=False)
    return addresses

"""The addresses and network interfaces of this machine."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from collections.abc import Iterator
from urllib.parse import urlsplit

LOOPBACK = "127.0.0.1"
PORTS = {"http": 80, "https": 443}
# From linux/netlink.h, rtnetlink.h and if_addr.h.
RTM_GETADDR, NLM_F_REQUEST_AND_DUMP, NLMSG_ERROR, NLMSG_DONE = 22, 0x301, 2, 3
IFA_ADDRESS, IFA_LOCAL = 1, 2
HEADER, ADDRESS, ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=BBBBI"), struct.Struct("=HH")


def by_interface() -> dict[str, tuple[str, ...]]:
    """Returns interface -> addresses, IPv4 first. Link-local ones are left out: other machines cannot use
    them."""
    names = dict(socket.if_nameindex())
    grouped: dict[str, list[str]] = {name: [] for name in names.values()}
    for index, address in _netlink_addresses():
        if index in names and not ipaddress.ip_address(address).is_link_local:
            grouped[names[index]].append(address)
    return {name: tuple(sorted(listed, key=_is_ipv6)) for name, listed in grouped.items()}


def _is_ipv6(address: str) -> bool:
    return ":" in address


def interface_with(address: str) -> str:
    """Returns the interface that has the address, "" if none has."""
    normalized = _normalize(address)
    return next(
        (name for name, interface_addresses in by_interface().items() if normalized in interface_addresses),
        "",
    )


def local_address_towards(url: str) -> str:
    """Returns the local address of a route to the host of `url`, "" without a route. Sends no packet."""
    parts = urlsplit(url)
    try:
        family, _, _, _, target = socket.getaddrinfo(
            parts.hostname, parts.port or PORTS.get(parts.scheme, 80), type=socket.SOCK_DGRAM
        )[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            # Connecting a datagram socket only chooses a route, and with it the local address.
            probe.connect(target)
            return str(probe.getsockname()[0])
    except OSError:
        return ""


def _normalize(address: str) -> str:
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return address


def _netlink_addresses() -> Iterator[tuple[int, str]]:
    """Yields (interface index, address) of all addresses, by rtnetlink."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as line:
        line.bind((0, 0))
        request = ADDRESS.pack(socket.AF_UNSPEC, 0, 0, 0, 0)
        line.send(
            HEADER.pack(HEADER.size + len(request), RTM_GETADDR, NLM_F_REQUEST_AND_DUMP, 1, 0) + request
        )
        while True:
            for kind, body in _messages(line.recv(65536)):
                if kind == NLMSG_DONE:
                    return
                if kind == NLMSG_ERROR:
                    code = -struct.unpack_from("=i", body)[0]
                    raise OSError(code, os.strerror(code))
                yield from _address(body)


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    while data:
        length, kind, _, _, _ = HEADER.unpack_from(data)
        yield kind, data[HEADER.size : length]
        data = data[_align(length) :]


def _address(body: bytes) -> Iterator[tuple[int, str]]:
    family, _, _, _, index = ADDRESS.unpack_from(body)
    if family not in (socket.AF_INET, socket.AF_INET6):
        return
    by_kind: dict[int, str] = {}
    rest = body[ADDRESS.size :]
    while rest:
        length, kind = ATTRIBUTE.unpack_from(rest)
        if kind in (IFA_ADDRESS, IFA_LOCAL):
            by_kind[kind] = socket.inet_ntop(family, rest[ATTRIBUTE.size : length])
        rest = rest[_align(length) :]
    # On a point-to-point link IFA_ADDRESS is the other end's.
    address = by_kind.get(IFA_LOCAL) or by_kind.get(IFA_ADDRESS)
    if address:
        yield index, address


def _align(length: int) -> int:
    return (length + 3) & ~3

"""Decides to which IP addresses that people name the hub may connect, for webhooks and package indexes, in
whatever form they are written."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator

from django.conf import settings

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
NEVER = [
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "::/128",
        "ff00::/8",
        "169.254.0.0/16",
        "fe80::/10",
        "fec0::/10",
        # Where clouds keep a machine's own credentials besides the link-local addresses: Alibaba, Azure,
        # Oracle, AWS, Google, Oracle, Scaleway.
        "100.100.100.200/32",
        "168.63.129.16/32",
        "192.0.0.192/32",
        "fd00:ec2::/32",
        "fd20:ce::/32",
        "fd00:c1::/32",
        "fd00:42::42/128",
        # NAT64 with a prefix of the local network: the hub cannot know to which IPv4 address such an address
        # leads.
        "64:ff9b:1::/48",
    )
]
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
COMPATIBLE = ipaddress.IPv6Network("::/96")
ISATAP = (0x00005EFE, 0x02005EFE)


def may_reach(text: str, host: str, port: int, listed_hosts: Collection[str] | None = None) -> bool:
    """Returns whether the hub may connect to `host`, which has the address `text`. `listed_hosts`: the hosts
    that the installation lists for this purpose, by default those of webhooks."""
    forms = list(_forms(ipaddress.ip_address(text.partition("%")[0])))
    if any(form in network for form in forms for network in NEVER if form.version == network.version):
        return False
    listed = settings.WEBHOOK_HOSTS if listed_hosts is None else listed_hosts
    return not any(form.is_loopback for form in forms) or _may_reach_loopback(host, port, listed)


def _may_reach_loopback(host: str, port: int, listed_hosts: Collection[str]) -> bool:
    """Returns whether the hub may connect to programs on its own machine: only while it serves this machine
    alone, or if the installation lists the host, and never at the hub's own ports."""
    if port in settings.OWN_PORTS:
        return False
    return settings.IS_ON_LOOPBACK_ONLY or host in listed_hosts


def _forms(address: Address) -> Iterator[Address]:
    """Yields the address itself, and every IPv4 address to which it leads through a tunnel or a
    translator."""
    yield address
    if isinstance(address, ipaddress.IPv4Address):
        return
    low = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    is_compatible = address in COMPATIBLE and not address.is_loopback
    if address in NAT64 or is_compatible or (int(address) >> 32) & 0xFFFFFFFF in ISATAP:
        yield low

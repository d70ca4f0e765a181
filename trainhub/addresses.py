"""This machine's own addresses, as other machines may know it."""

from __future__ import annotations

import ipaddress
import re
import socket
from pathlib import Path

IPV4 = Path("/proc/net/fib_trie")
IPV6 = Path("/proc/net/if_inet6")
LOCAL = re.compile(r"\|-- (\S+)\n\s+/32 host LOCAL")


def in_use() -> str:
    """This machine's address on the way to others, or ""; choosing a route sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return ""
        return str(probe.getsockname()[0])


def local() -> list[str]:
    """Every address that others may use; where the system does not list them, the one in use."""
    found = set(LOCAL.findall(_read(IPV4)))
    for line in _read(IPV6).splitlines():
        digits = line.split()[0]
        found.add(":".join(digits[at : at + 4] for at in range(0, 32, 4)))
    parsed = {ipaddress.ip_address(text) for text in {*found, in_use()} if text}
    usable = [address for address in parsed if not address.is_loopback and not address.is_link_local]
    return [str(address) for address in sorted(usable, key=lambda address: (address.version, int(address)))]


def bracketed(host: str) -> str:
    """Returns the host as a part of a URL, where an IPv6 address needs brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""  # not Linux

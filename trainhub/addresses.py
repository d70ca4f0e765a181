"""The addresses of this machine at which other machines may reach it."""

from __future__ import annotations

import ipaddress
import re
import socket
from pathlib import Path

IPV4 = Path("/proc/net/fib_trie")
IPV6 = Path("/proc/net/if_inet6")
# The tree of IPv4 routes lists each address of this machine as a leaf, followed by a line with its type.
LOCAL = re.compile(r"\|-- (\S+)\n\s+/32 host LOCAL")


def in_use() -> str:
    """Returns the address that this machine uses towards other networks, or "". Sends no packet."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # 192.0.2.1 is reserved for documentation. Connecting a UDP socket sends nothing; it only makes
            # the kernel choose the source address.
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return ""
        return str(probe.getsockname()[0])


def local() -> list[str]:
    """Returns every address of this machine that others may use, sorted. On a system that does not list them,
    it is only the one in use."""
    addresses = set(LOCAL.findall(_read(IPV4)))
    for line in _read(IPV6).splitlines():
        digits = line.split()[0]
        # The kernel writes an IPv6 address as 32 hexadecimal digits without colons.
        addresses.add(":".join(digits[at : at + 4] for at in range(0, 32, 4)))
    parsed = {ipaddress.ip_address(text) for text in {*addresses, in_use()} if text}
    usable = [address for address in parsed if not address.is_loopback and not address.is_link_local]
    return [str(address) for address in sorted(usable, key=lambda address: (address.version, int(address)))]


def bracketed(host: str) -> str:
    """Returns the host as it is written in a URL, where an IPv6 address needs brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""  # not Linux

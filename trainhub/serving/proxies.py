"""The proxies of TRUSTED_PROXIES. Only these may state a client's address and scheme in headers."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from trainhub import env


class TrustedProxies:
    """A set of addresses and networks, for example 127.0.0.1, 10.0.0.0/8 or fd00::/8."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        self._networks = [_network(word) for word in words]

    def __bool__(self) -> bool:
        return bool(self._networks)

    def __contains__(self, host: object) -> bool:
        if not self._networks:
            return False
        try:
            address = ipaddress.ip_address(str(host))
        except ValueError:
            return False
        return any(address in network for network in self._networks)


def trusted_proxies() -> TrustedProxies:
    """Returns the proxies in TRUSTED_PROXIES. Raises EnvError if it contains anything but addresses and
    networks."""
    return TrustedProxies(env.split_words("TRUSTED_PROXIES"))


def _network(word: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(word)
    except ValueError as error:
        remedy = (
            "must list the proxies' addresses or networks, separated by commas, for example "
            "127.0.0.1,10.0.0.0/24"
        )
        raise env.EnvError(f"TRUSTED_PROXIES={word} {remedy}") from error

"""Addresses of a hub, their parts, and the proxy on the way to it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlencode, urlsplit

from trainhub_sdk.errors import NoProfile, TrainHubError


def escape(text: str) -> str:
    """Returns a path, such as the name of a file, as a part of an address."""
    return quote(text, safe="/")


def encode_query(query: Mapping[str, Any]) -> str:
    """Returns the parameters as a part of an address. None leaves one out, and a list repeats it."""
    return urlencode({name: value for name, value in query.items() if value is not None}, doseq=True)


def request_target(path: str, base: str) -> str:
    """Returns the path for a request to a hub below the path `base`. Addresses that the hub has given may be
    whole ones: they are taken from the hub that is used, whatever it believes its address to be."""
    if "://" in path.split("?", 1)[0]:
        parts = urlsplit(path)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
    return path if base and path.startswith(f"{base}/") else base + path


def split_hub_address(url: str) -> SplitResult:
    """Raises NoProfile for a text that is no address of a hub."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # such as a port that is no number
        is_address = False
    if not is_address:
        raise NoProfile(f"{url!r} is no address of a hub: write it as https://host or http://host:port.")
    return parts


class Proxy(NamedTuple):
    """`credentials`: name and password with a colon between them, "" for none."""

    host: str
    port: int
    credentials: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """What the proxy gets with each request or tunnel."""
        if not self.credentials:
            return {}
        return {"Proxy-Authorization": f"Basic {b64encode(self.credentials.encode()).decode()}"}


def find_proxy(scheme: str, host: str) -> Proxy | None:
    """Returns the proxy that this machine uses for a host, None for none. Raises TrainHubError for one that
    is no HTTP proxy."""
    if host == "localhost" or host.startswith("127.") or host == "::1":
        return None
    from urllib.request import getproxies, proxy_bypass

    proxies: dict[str, str] = getproxies()
    if not proxies or proxy_bypass(host):
        return None
    address = proxies.get(scheme, "") or proxies.get("all", "")
    return parse_proxy(address, host) if address else None


def parse_proxy(address: str, host: str) -> Proxy:
    """Returns the proxy at an address as HTTPS_PROXY has it. `host`: to which it leads. Raises
    TrainHubError."""
    parts = urlsplit(address if "://" in address else f"http://{address}")
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme != "http" or not parts.hostname or port == -1:
        raise TrainHubError(
            f"The proxy {parts.scheme}://{parts.netloc.rpartition('@')[2]} for {host} cannot be used: set "
            f"HTTPS_PROXY to http://HOST:PORT, or NO_PROXY={host} to use none."
        )
    credentials = f"{parts.username}:{parts.password or ''}" if parts.username else ""
    return Proxy(parts.hostname, port or 80, unquote(credentials))

"""HTTP requests to registries, and to the hosts to which registries send their clients: to permitted
addresses only, with trusted certificates, and with limits of time."""

from __future__ import annotations

import ssl
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from http import HTTPStatus
from urllib.parse import SplitResult, urljoin, urlsplit

import certifi
import httpx
from django.conf import settings

from environments.images.reference import DOCKER_HUB, ImageReference
from environments.images.registry_error import RegistryError
from environments.indexes.index_policy import PORTS, HostRefused, permitted_addresses

CONNECT_S, READ_S = 10.0, 30.0
MAX_REDIRECTS = 5
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
REDIRECTS = (
    HTTPStatus.MOVED_PERMANENTLY,
    HTTPStatus.FOUND,
    HTTPStatus.SEE_OTHER,
    HTTPStatus.TEMPORARY_REDIRECT,
    HTTPStatus.PERMANENT_REDIRECT,
)


class NotTls(Exception):
    """The server does not speak TLS."""


class RegistryConnection:
    """Requests of one purpose. `deadline`: monotonic seconds until which all of them must be over."""

    def __init__(self, registry: str, deadline: float) -> None:
        self._registry = registry
        self._deadline = deadline

    @contextmanager
    def get(self, url: str, headers: Mapping[str, str]) -> Iterator[httpx.Response]:
        """Yields the response to a GET, whose body has not been read, after redirects. Raises RegistryError,
        and NotTls."""
        with ExitStack() as stack:
            try:
                response = stack.enter_context(self._hops(url, headers))
            except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
                raise self._explained(error) from error
            # Outside of `try`: what fails in the caller's block is not the registry's fault.
            yield response

    def read(self, response: httpx.Response, max_bytes: int) -> bytes:
        """Returns the whole body. Raises RegistryError if it is longer than `max_bytes`."""
        data = bytearray()
        for piece in self.pieces(response):
            data += piece
            if len(data) > max_bytes:
                raise RegistryError(
                    f"The registry {self._registry} sent more than {max_bytes:,} bytes where a description "
                    "of an image was expected. Check that the address is that of a registry."
                )
        return bytes(data)

    def pieces(self, response: httpx.Response) -> Iterator[bytes]:
        """Yields the body. Raises RegistryError if it takes too long."""
        try:
            for piece in response.iter_raw():
                yield piece
                self._require_time()
        except (httpx.HTTPError, OSError) as error:
            raise self._explained(error) from error

    @contextmanager
    def _hops(self, url: str, headers: Mapping[str, str]) -> Iterator[httpx.Response]:
        first = urlsplit(url)
        for _ in range(MAX_REDIRECTS + 1):
            with self._once(url, headers) as response:
                target = response.headers.get("location", "")
                if response.status_code not in REDIRECTS or not target:
                    yield response
                    return
            url = urljoin(url, target)
            parts = urlsplit(url)
            self._check_redirect(first, parts)
            if (parts.scheme, parts.netloc) != (first.scheme, first.netloc):
                # The login is for the registry, not for the storage to which it sends its clients.
                headers = {name: value for name, value in headers.items() if name != "Authorization"}
        raise RegistryError(f"The registry {self._registry} redirects in a circle. Ask its operator.")

    def _check_redirect(self, first: SplitResult, target: SplitResult) -> None:
        is_worse = first.scheme == "https" and target.scheme != "https"
        if target.scheme not in PORTS or not target.hostname or is_worse:
            raise RegistryError(
                f"The registry {self._registry} redirects to an address without TLS, which the hub does not "
                "follow. Ask its operator."
            )

    @contextmanager
    def _once(self, url: str, headers: Mapping[str, str]) -> Iterator[httpx.Response]:
        self._require_time()
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
        proxy = _proxy(parts.scheme, host)
        # A proxy resolves names, and decides itself which addresses it reaches.
        target = url if proxy else self._pinned(parts, host, port)
        sent = {
            "Host": parts.netloc.rpartition("@")[2],
            "Accept-Encoding": "identity",
            "User-Agent": "TrainHub",
            **headers,
        }
        timeout = httpx.Timeout(READ_S, connect=CONNECT_S)
        with (
            httpx.Client(verify=trust(), trust_env=False, proxy=proxy, timeout=timeout) as client,
            client.stream("GET", target, headers=sent, extensions={"sni_hostname": host}) as response,
        ):
            yield response

    def _pinned(self, parts: SplitResult, host: str, port: int) -> str:
        """Returns the URL with the very IP address that was checked, so that the name cannot lead to another
        one afterwards."""
        try:
            address = permitted_addresses(host, port, settings.IMAGE_REGISTRY_HOSTS)[0]
        except HostRefused as error:
            if error.is_unknown:
                raise RegistryError(
                    f"The name {host} of the registry is not known. Check its spelling."
                ) from error
            raise RegistryError(
                f"The registry {host} is at an address that the hub does not connect to. An operator can add "
                "a host of this machine with IMAGE_REGISTRY_HOSTS."
            ) from error
        literal = f"[{address}]" if ":" in address else address
        return parts._replace(netloc=f"{literal}:{port}", fragment="").geturl()

    def _require_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise RegistryError(
                f"The registry {self._registry} is too slow: it did not give all that is needed in time. Try "
                "again later."
            )

    def _explained(self, error: Exception) -> Exception:
        text = str(error)
        if "CERTIFICATE_VERIFY_FAILED" in text:
            reason = text.partition("certificate verify failed: ")[2].partition(" (_ssl")[0]
            return RegistryError(
                f"The hub does not trust the certificate of the registry {self._registry} "
                f"({reason or 'it could not be verified'}). An operator adds the certificate of its "
                "authority to those of the hub's machine, or names a file with it in SSL_CERT_FILE, and "
                "restarts the hub."
            )
        if isinstance(error, httpx.ConnectError) and "SSL" in text:
            return NotTls()
        if isinstance(error, httpx.TimeoutException):
            return RegistryError(
                f"The registry {self._registry} does not answer. Check its name and port, or try again later."
            )
        return RegistryError(
            f"The registry {self._registry} cannot be reached "
            f"({text.rstrip('.') or type(error).__name__:.200}). Check its name and port, or try again later."
        )


def check_registry(reference: ImageReference) -> None:
    """Raises RegistryError if the installation does not list the registry."""
    listed = settings.IMAGE_REGISTRY_HOSTS
    host = urlsplit(f"//{reference.registry}").hostname or ""
    if listed and host not in listed:
        raise RegistryError(
            f"{host} is not one of the registries that this installation uses. Choose one of "
            f"{', '.join(listed)}, or ask an operator to add it (IMAGE_REGISTRY_HOSTS)."
        )


def is_loopback(registry: str) -> bool:
    """Returns whether the registry, by its name, is a program of the hub's own machine: as with docker, it
    then needs no TLS."""
    host = registry if registry.endswith("]") else registry.rpartition(":")[0] or registry
    return host in LOOPBACK and registry != DOCKER_HUB


@cache
def trust() -> ssl.SSLContext:
    """The authorities of the machine, or of SSL_CERT_FILE, and those that come with certifi."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


def _proxy(scheme: str, host: str) -> str | None:
    """Returns the proxy that the hub's environment names for the host (HTTPS_PROXY, HTTP_PROXY, NO_PROXY)."""
    proxy = urllib.request.getproxies().get(scheme)
    return None if not proxy or urllib.request.proxy_bypass(host) else proxy

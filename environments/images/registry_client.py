"""Reads images of a registry by the OCI distribution protocol, which Docker's registry speaks, too."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http import HTTPStatus

import httpx

from environments.images.connection import NotTls, RegistryConnection, check_registry, is_loopback
from environments.images.reference import DIGEST, DOCKER_HUB, ImageReference
from environments.images.registry_error import RegistryError
from environments.images.registry_login import Authenticator, RegistryLogin, login_refused

MAX_MANIFEST_BYTES = 4 * 2**20
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
DOCKER_INDEX = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
ACCEPTED = ", ".join((OCI_INDEX, OCI_MANIFEST, DOCKER_INDEX, DOCKER_MANIFEST))
DEFAULT_MAX_S = 90.0


@dataclass(frozen=True)
class StoredManifest:
    """A manifest or an index exactly as the registry has it."""

    data: bytes
    media_type: str

    @property
    def digest(self) -> str:
        return f"sha256:{hashlib.sha256(self.data).hexdigest()}"


class RegistryClient:
    """Asks the registry of one image. All requests together take at most `max_s` seconds."""

    def __init__(
        self, reference: ImageReference, login: RegistryLogin | None = None, *, max_s: float = DEFAULT_MAX_S
    ) -> None:
        check_registry(reference)
        self._reference = reference
        self._login = login
        self._connection = RegistryConnection(reference.registry, time.monotonic() + max_s)
        self._authenticator = Authenticator(reference, login, self._connection)
        self._scheme = "https"

    def manifest(self, requested: str) -> StoredManifest:
        """Returns the manifest or index of a tag or digest. Raises RegistryError."""
        with self._get(f"manifests/{requested}", ACCEPTED) as response:
            data = self._connection.read(response, MAX_MANIFEST_BYTES)
            media_type = response.headers.get("content-type", "").partition(";")[0].strip()
        manifest = StoredManifest(data, media_type)
        if DIGEST.match(requested) and manifest.digest != requested:
            raise RegistryError(
                f"The registry {self._reference.registry} sent another manifest than {requested}. Ask its "
                "operator."
            )
        return manifest

    def blob(self, digest: str, max_bytes: int) -> bytes:
        """Returns a small blob whole. Raises RegistryError."""
        with self.open_blob(digest) as pieces:
            data = b"".join(self._limited(pieces, digest, max_bytes))
        if f"sha256:{hashlib.sha256(data).hexdigest()}" != digest:
            raise RegistryError(
                f"The registry {self._reference.registry} sent other bytes than those of {digest}. Ask its "
                "operator."
            )
        return data

    @contextmanager
    def open_blob(self, digest: str) -> Iterator[Iterator[bytes]]:
        """Yields the pieces of a blob, which the caller checks. Raises RegistryError."""
        with self._get(f"blobs/{digest}", "*/*") as response:
            yield self._connection.pieces(response)

    def _limited(self, pieces: Iterator[bytes], digest: str, max_bytes: int) -> Iterator[bytes]:
        size = 0
        for piece in pieces:
            size += len(piece)
            if size > max_bytes:
                raise RegistryError(
                    f"The registry {self._reference.registry} sent more than {max_bytes:,} bytes for "
                    f"{digest}. Ask its operator."
                )
            yield piece

    @contextmanager
    def _get(self, path: str, accept: str) -> Iterator[httpx.Response]:
        """Yields a successful response. Raises RegistryError."""
        while True:
            challenge = ""
            with self._open(path, accept) as response:
                if response.status_code == HTTPStatus.OK:
                    yield response
                    return
                if response.status_code != HTTPStatus.UNAUTHORIZED:
                    raise self._refusal(response)
                challenge = response.headers.get("www-authenticate", "")
            if not self._authenticator.answer(challenge, is_plain=self._scheme == "http"):
                raise login_refused(self._reference, self._login)

    @contextmanager
    def _open(self, path: str, accept: str) -> Iterator[httpx.Response]:
        headers = {"Accept": accept}
        if self._authenticator.header:
            headers["Authorization"] = self._authenticator.header
        place = f"{self._reference.api_host}/v2/{self._reference.repository}/{path}"
        with ExitStack() as stack:
            try:
                response = stack.enter_context(self._connection.get(f"{self._scheme}://{place}", headers))
            except NotTls as error:
                if not is_loopback(self._reference.registry):
                    raise RegistryError(
                        f"The registry {self._reference.registry} does not speak TLS. The hub asks "
                        "registries without TLS on its own machine only; give the registry a certificate."
                    ) from error
                self._scheme = "http"
                response = stack.enter_context(self._connection.get(f"http://{place}", headers))
            yield response

    def _refusal(self, response: httpx.Response) -> RegistryError:
        status, registry = response.status_code, self._reference.registry
        if status == HTTPStatus.NOT_FOUND:
            return RegistryError(
                f"The registry {registry} has no image {self._reference.repository} with "
                f"{'the digest ' if self._reference.digest else 'the tag '}{self._reference.requested}. "
                "Check the name and what follows it."
            )
        if status == HTTPStatus.FORBIDDEN:
            return login_refused(self._reference, self._login)
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            more = (
                "; with a login Docker Hub allows more: name a secret with user:password"
                if registry == DOCKER_HUB and self._login is None
                else ""
            )
            return RegistryError(
                f"The registry {registry} has been asked too often (HTTP 429). Try again later{more}."
            )
        return RegistryError(
            f"The registry {registry} answers with an error (HTTP {status}). Try again later, or ask its "
            "operator."
        )

"""Reads references of images, in the grammar and with the defaults of docker."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainhub_launch.errors import SpecError

FIELD = "image"
DOCKER_HUB = "docker.io"
# Docker Hub answers registry clients at another host than its name.
_API_HOSTS = {DOCKER_HUB: "registry-1.docker.io"}
_ALIASES = {"index.docker.io": DOCKER_HUB, "registry-1.docker.io": DOCKER_HUB}
MAX_NAME_LENGTH = 255
DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_REGISTRY = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{{1,5}})?\Z")
_COMPONENT = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*\Z")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\Z")
_EXAMPLE = "such as pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime or ghcr.io/team/train@sha256:…"


@dataclass(frozen=True)
class ImageReference:
    """`registry`: host and perhaps port, as people write it; `tag`: "" if only a digest is named;
    `digest`: "sha256:…" or ""."""

    registry: str
    repository: str
    tag: str = ""
    digest: str = ""

    @property
    def name(self) -> str:
        return f"{self.registry}/{self.repository}"

    @property
    def api_host(self) -> str:
        """Returns the host, and perhaps port, at which the registry answers."""
        return _API_HOSTS.get(self.registry, self.registry)

    @property
    def requested(self) -> str:
        """Returns what to ask the registry for: the digest if there is one, else the tag."""
        return self.digest or self.tag

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.name}{tag}{'@' if self.digest else ''}{self.digest}"


def parse_reference(text: str) -> ImageReference:
    """Returns the reference, with the registry, folder and tag that docker adds to short ones. Raises
    SpecError with the remedy."""
    text = text.strip()
    if not text:
        raise SpecError(FIELD, f"is required: name an image, {_EXAMPLE}")
    scheme, separator, rest = text.partition("://")
    if separator:
        raise SpecError(FIELD, f"leave out {scheme:.20}:// and write {rest:.100}")
    before_digest, at, digest = text.partition("@")
    if at and not DIGEST.match(digest):
        raise SpecError(
            FIELD, "the part after @ must be sha256: and 64 hexadecimal digits in lower case, or be left out"
        )
    name, tag = _split_tag(before_digest)
    registry, repository = _split_registry(name)
    _check_name(registry, repository)
    if tag is not None and not _TAG.match(tag):
        raise SpecError(
            FIELD, f"{tag!r:.60} is no tag: use at most 128 letters, digits, '_', '.' and '-' after the colon"
        )
    return ImageReference(registry, repository, tag or ("" if digest else "latest"), digest)


def _split_tag(text: str) -> tuple[str, str | None]:
    """A colon before the last slash belongs to the port of the registry."""
    head, colon, tail = text.rpartition(":")
    return (head, tail) if colon and "/" not in tail else (text, None)


def _split_registry(name: str) -> tuple[str, str]:
    first, slash, rest = name.partition("/")
    is_registry = "." in first or ":" in first or first == "localhost" or first != first.lower()
    if not slash or not is_registry:
        return DOCKER_HUB, name if slash else f"library/{name}"
    registry = _ALIASES.get(first, first)
    if registry == DOCKER_HUB and "/" not in rest:
        rest = f"library/{rest}"
    return registry, rest


def _check_name(registry: str, repository: str) -> None:
    if not _REGISTRY.match(registry) or not 0 < _port(registry) < 2**16:
        raise SpecError(
            FIELD, f"{registry!r:.100} is no registry: name a host, and perhaps a port, {_EXAMPLE}"
        )
    wrong = next((part for part in repository.split("/") if not _COMPONENT.match(part)), None)
    if wrong is None and len(repository) <= MAX_NAME_LENGTH:
        return
    if wrong is not None and wrong != wrong.lower() and _COMPONENT.match(wrong.lower()):
        raise SpecError(FIELD, f"{wrong!r:.100} has capitals, which names of images never have")
    raise SpecError(
        FIELD,
        f"{repository!r:.100} is no name of an image: use at most {MAX_NAME_LENGTH} lower-case letters, "
        f"digits and '.', '_', '-' between them, and '/' between parts, {_EXAMPLE}",
    )


def _port(registry: str) -> int:
    port = registry.rpartition("]")[2].rpartition(":")[2] if ":" in registry else ""
    return int(port) if port.isdecimal() else 443

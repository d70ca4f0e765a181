"""What to run on a machine that is to join."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

from clusters.enrolment.node_wheel import sha256, wheel
from trainhub_launch.addresses import is_loopback

FOLDER = "trainhub-node"


@dataclass(frozen=True)
class Instructions:
    """Steps for a shell; no `install` where the hub has no package to give. `is_pinned`: the token names the
    authority."""

    install: tuple[str, ...]
    join: str
    run: str
    is_pinned: bool

    @property
    def steps(self) -> tuple[str, ...]:
        return (*self.install, self.join, self.run)

    @property
    def whole(self) -> str:
        """All in one line."""
        return " && ".join(self.steps)


def instructions(token: str) -> Instructions:
    install = _install()
    program = f"{FOLDER}/bin/trainhub-node" if install else "trainhub-node"
    join = f"{program} join {settings.API_URL} --token {token}"
    if settings.API_URL.startswith("http://") and not reaches_only_this_machine():
        join += " --insecure-http"
    return Instructions(install, join, f"{program} run", bool(settings.HUB_CA))


def reaches_only_this_machine() -> bool:
    return is_loopback(urlsplit(settings.API_URL).hostname or "")


def _install() -> tuple[str, ...]:
    """pip cannot know the hub's own authority; the package is known by its hash instead."""
    package = wheel()
    if package is None:
        return ()
    trusted = f" --trusted-host {urlsplit(settings.API_URL).netloc}" if settings.HUB_CA else ""
    address = f"{settings.API_URL}/api/v1/node/wheel/{package.name}#sha256={sha256(package)}"
    return (f"python3 -m venv {FOLDER}", f"{FOLDER}/bin/pip install --quiet{trusted} '{address}'")

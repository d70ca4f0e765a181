"""The shell commands that join a machine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings

from clusters.enrolment.node_wheel import node_wheel
from trainhub_launch.addresses import is_loopback
from workspaces.own_wheels.own_wheel import sha256

FOLDER = "trainhub-node"


@dataclass(frozen=True)
class JoinInstructions:
    """Steps for a shell. `install` is empty if the hub cannot build the package. `is_pinned`: the token
    contains the fingerprint of the hub's authority."""

    install: tuple[str, ...]
    join: str
    run: str
    is_pinned: bool

    @property
    def steps(self) -> tuple[str, ...]:
        return (*self.install, self.join, self.run)

    @property
    def command(self) -> str:
        """Returns all steps in one line."""
        return " && ".join(self.steps)


def instructions(token: str) -> JoinInstructions:
    install = _install()
    program = f"{FOLDER}/bin/trainhub-node" if install else "trainhub-node"
    join = f"{program} join {settings.API_URL} --token {token}"
    if settings.API_URL.startswith("http://") and not reaches_only_this_machine():
        join += " --insecure-http"
    return JoinInstructions(install, join, f"{program} run", bool(settings.HUB_CA))


def reaches_only_this_machine() -> bool:
    return is_loopback(urlsplit(settings.API_URL).hostname or "")


def _install() -> tuple[str, ...]:
    """Returns the install commands."""
    options = pip_options()
    return (f"python3 -m venv {FOLDER}", f"{FOLDER}/bin/pip install --quiet{options}") if options else ()


def pip_options() -> str:
    """Returns the options with which pip installs the package of this hub, with a space before each; "" if
    the hub cannot build it. pip does not know the hub's own authority, so the address contains the hash of
    the package."""
    package = node_wheel()
    if package is None:
        return ""
    trust_option = f" --trusted-host {urlsplit(settings.API_URL).netloc}" if settings.HUB_CA else ""
    address = f"{settings.API_URL}/api/v1/node/wheel/{package.name}#sha256={_digest(package)}"
    return f"{trust_option} '{address}'"


@cache
def _digest(package: Path) -> str:
    # Wheels of other sources are in other folders.
    return sha256(package)

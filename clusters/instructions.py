"""What to run on a machine that is to join."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

from clusters.wheel import sha256, wheel

FOLDER = "trainhub-node"


@dataclass(frozen=True)
class Instructions:
    """`whole` is one line for a shell; `install` is empty where the hub has no package to give."""

    install: str
    join: str
    run: str

    @property
    def whole(self) -> str:
        return " && ".join(step for step in (self.install, self.join, self.run) if step)


def instructions(token: str) -> Instructions:
    install = _install()
    program = f"{FOLDER}/bin/trainhub-node" if install else "trainhub-node"
    return Instructions(install, f"{program} join {settings.PUBLIC_URL} --token {token}", f"{program} run")


def reaches_only_this_machine() -> bool:
    host = urlsplit(settings.PUBLIC_URL).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _install() -> str:
    """pip cannot know the hub's own authority; the package is known by its hash instead."""
    package = wheel()
    if package is None:
        return ""
    trusted = f" --trusted-host {urlsplit(settings.PUBLIC_URL).netloc}" if settings.HUB_CA else ""
    address = f"{settings.PUBLIC_URL}/api/v1/node/wheel/{package.name}#sha256={sha256(package)}"
    return f"python3 -m venv {FOLDER} && {FOLDER}/bin/pip install --quiet{trusted} '{address}'"

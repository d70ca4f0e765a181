"""How a node pulls an image from the hub: with a ticket that opens only that image.

The ticket is in a file that only the agent's account can read and that exists during the pull."""

from __future__ import annotations

import os
from binascii import b2a_base64

from trainhub_node import records
from trainhub_node.containers.engine import PODMAN, Engine
from trainhub_node.untrusted import removal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from trainhub_node.supervisor.gang import Gang

USER = "node"
FOLDER, LOGIN_FILE, AUTHORITY_FILE = "registry", "config.json", "hub.crt"


def image_name(order: Mapping[str, Any]) -> str:
    """Returns the name by which this node's engine knows and pulls the image of an order."""
    image, registry = order["environment"]["image"], order.get("image_registry")
    return f"{registry['address']}@{image['digest']}" if registry else str(image["pull"])


class RegistryLogin:
    """Has a `command` that pulls the image of the run. Its login is there as long as the `with` block."""

    def __init__(self, gang: Gang, engine: Engine) -> None:
        self._gang = gang
        self._engine = engine
        self._folder = f"{gang.folder.path}/{FOLDER}"
        self._registry = gang.order.get("image_registry")
        self.command = [engine.program, "pull", image_name(gang.order)]

    def __enter__(self) -> RegistryLogin:
        if not self._registry:
            return self
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        host = self._registry["address"].partition("/")[0]
        login = b2a_base64(f"{USER}:{self._registry['token']}".encode(), newline=False).decode()
        records.write(f"{self._folder}/{LOGIN_FILE}", {"auths": {host: {"auth": login}}})
        if self._engine.name == PODMAN:
            self.command[2:2] = [f"--authfile={self._folder}/{LOGIN_FILE}", *self._trust()]
        else:
            self.command[1:1] = [f"--config={self._folder}"]
        return self

    def _trust(self) -> list[str]:
        """Returns the options with which podman trusts the hub. Docker's daemon has files for that."""
        if self._gang.terms.get("hub", "").startswith("http://"):
            return ["--tls-verify=false"]
        authority = self._gang.terms.get("ca")
        if not authority:
            return []
        with open(authority, "rb") as source, open(f"{self._folder}/{AUTHORITY_FILE}", "wb") as target:
            target.write(source.read())
        return [f"--cert-dir={self._folder}"]

    def __exit__(self, *_: object) -> None:
        removal.remove_tree(self._folder)

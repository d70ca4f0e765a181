"""The login with which podman pulls the images that a Dockerfile names: it comes from the hub for one build,
and is in a file in memory that only this account can read, as long as podman builds."""

from __future__ import annotations

import json
import os
from binascii import b2a_base64
from contextlib import contextmanager

from trainhub_node import records
from trainhub_node.environments.making.hub_upload import HubUpload
from trainhub_node.supervisor.gang import PreparationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainhub_node.supervisor.gang import Gang

LOGIN_FILE = "login.json"


class BaseLogin:
    """`options`: those with which podman uses it. `refusal`: what to say if a registry refuses it."""

    def __init__(self, options: tuple[str, ...], refusal: str) -> None:
        self.options = options
        self.refusal = refusal


NO_LOGIN = BaseLogin(
    (),
    "its registry wants a login, or has no such image. Check the name; for a private image store "
    "user:password as a secret of the workspace, and name that secret as the registry's login in a new "
    "version",
)


@contextmanager
def login_of_build(gang: Gang, folder: str) -> Iterator[BaseLogin]:
    """Yields the login of the order. `folder`: in memory, where only this account gets. Raises
    PreparationFailed, and StopRequested."""
    if not gang.order["make"].get("has_registry_login"):
        yield NO_LOGIN
        return
    try:
        login = json.loads(HubUpload(gang).get("registry-login/"))
        pair = f"{login['user']}:{login['password']}"
        registry, secret = str(login["registry"]), str(login["secret"])
    except (ValueError, KeyError, TypeError) as error:
        raise PreparationFailed("environment", "The hub sent no login that this agent reads.") from error
    path = f"{folder}/{LOGIN_FILE}"
    records.write(path, {"auths": {registry: {"auth": b2a_base64(pair.encode(), newline=False).decode()}}})
    try:
        yield BaseLogin(
            (f"--authfile={path}",),
            f"its registry refuses the login in the secret {secret}, which is for {registry}. Store the "
            "right user:password in that secret, and see that this account may read the image",
        )
    finally:
        os.unlink(path)

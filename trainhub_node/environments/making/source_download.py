"""Gets a source distribution from the hub, and checks its hash."""

from __future__ import annotations

import hashlib
import os
from urllib import request

from trainhub_node.environments.hub_connection import error_reason, hub_opener
from trainhub_node.supervisor.gang import Gang, PreparationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

TIMEOUT_S = 120.0
BLOCK = 1024 * 1024


def fetch_source(gang: Gang, package: Mapping[str, Any], folder: str) -> str:
    """Returns the path of the file in `folder`, which every account can read. Raises PreparationFailed, and
    StopRequested."""
    filename, sha256 = os.path.basename(str(package["filename"])), str(package["sha256"])
    url = f"{gang.order['package_index']}/files/{sha256}/{filename}"
    headers = {"Authorization": f"Bearer {gang.order['package_ticket']}"}
    path = f"{folder}/{filename}"
    digest = hashlib.sha256()
    try:
        opener = hub_opener(gang, url)
        source = request.Request(url, None, headers)  # noqa: S310 - the hub's
        with opener.open(source, timeout=TIMEOUT_S) as answer, open(path, "xb") as file:
            while block := answer.read(BLOCK):
                gang.check_stop()
                digest.update(block)
                file.write(block)
    except OSError as error:
        raise PreparationFailed(
            "environment", f"The hub does not serve {filename} to this node: {error_reason(error)}."
        ) from error
    if digest.hexdigest() != sha256:
        raise PreparationFailed("environment", f"{filename} arrived damaged from the hub. Build it again.")
    os.chmod(path, 0o644)
    return path

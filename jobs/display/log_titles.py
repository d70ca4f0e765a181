"""What pages call the logs that belong to no rank."""

from __future__ import annotations

import re

from trainhub_launch.log_names import ENVIRONMENT_LOG, LAUNCHER_LOG, PREPARATION_LOG

TITLES = {ENVIRONMENT_LOG: "Environment build", PREPARATION_LOG: "Preparation", LAUNCHER_LOG: "Launcher"}
OF_NODE = re.compile(r"node_(\d+)/(.+)", re.DOTALL)


def file_title(name: str) -> str:
    """Returns the title of a log that belongs to no rank. The node's folder is omitted, because pages show
    the node's name beside it."""
    match = OF_NODE.fullmatch(name)
    plain = match[2] if match else name
    return TITLES.get(plain, plain.removeprefix("logs/"))

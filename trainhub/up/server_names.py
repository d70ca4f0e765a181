"""The names of servers that were given none."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Sequence


def set_default_name(parts: Sequence[str]) -> None:
    """Sets SERVER_NAME for `manage.py up --only …`, unless it is set. Must run before anything reads where
    the files of this server are."""
    if not os.environ.get("SERVER_NAME"):
        host = re.sub(r"[^A-Za-z0-9._-]+", "-", socket.gethostname()).strip("-.")[:80] or "server"
        os.environ["SERVER_NAME"] = "-".join([host, *",".join(parts).split(",")])

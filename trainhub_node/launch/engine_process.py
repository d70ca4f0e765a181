"""Calls of the container engine by the agent itself."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Sequence

from trainhub_node.containers.engine import Engine

log = logging.getLogger(__name__)


def run_engine(
    engine: Engine, command: Sequence[str], *, timeout_s: float
) -> subprocess.CompletedProcess[str] | None:
    """Returns how the command ended; None if it could not be started or did not end in time, which is
    logged."""
    try:
        return subprocess.run(
            command,
            env=engine.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        log.warning("%s could not be called: %s", engine.name, error)
        return None

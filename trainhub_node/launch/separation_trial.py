"""What of the separation of runs works on this machine, found by a trial when the agent starts."""

from __future__ import annotations

import logging
import os
import subprocess
import tempfile
from dataclasses import replace

from trainhub_node.launch import wrapper
from trainhub_node.settings import NodeSettings
from trainhub_node.untrusted import removal

log = logging.getLogger(__name__)
TIMEOUT_S = 30


def with_separation(settings: NodeSettings) -> NodeSettings:
    """Returns the settings, completed by whether runs get namespaces of their own here. Runs that have the
    agent's own account get none: they could leave them."""
    if settings.run_as is None:
        return settings
    reason = _trial(settings, settings.run_as.uid)
    if reason:
        log.warning("Runs have no namespaces of their own on this machine: %s", reason)
    return replace(settings, has_namespaces=not reason, separation_trouble=reason)


def _trial(settings: NodeSettings, uid: int) -> str:
    folder = tempfile.mkdtemp(prefix=".trial-", dir=settings.folder)
    os.chmod(folder, 0o711)  # noqa: S103 - the account of the trial passes through
    try:
        done = subprocess.run(
            [*wrapper.AGENT_WRAPPER, "trial", folder, str(uid)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd="/",
            env={},
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"a trial did not end within {TIMEOUT_S} s"
    finally:
        removal.remove_tree(folder)
    lines = (done.stdout or done.stderr).strip().splitlines()
    if done.returncode:
        return lines[-1] if lines else f"a trial ended with code {done.returncode}"
    return lines[-1] if lines else ""

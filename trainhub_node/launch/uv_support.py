"""Finds the uv of this agent."""

from __future__ import annotations

import functools
import importlib
import os

from trainhub_node.environments import builder_account
from trainhub_node.settings import NodeSettings


def usable_uv(settings: NodeSettings) -> str:
    """Returns the program with which this node installs and builds packages, "" if it cannot."""
    return _uv_path() if builder_account.is_installer_free(settings.uids) else ""


@functools.cache
def _uv_path() -> str:
    """Returns the program of uv that was installed with this agent, "" without one: an agent that was
    upgraded in an older environment may lack it."""
    try:
        return str(os.path.realpath(importlib.import_module("uv").find_uv_bin()))
    except (ImportError, FileNotFoundError):
        return ""

"""The versions of Python that nodes have, for environments that need one."""

from __future__ import annotations

import re
from collections import Counter

from clusters.node_reports.inventory import interpreters_of
from clusters.visibility import visible_nodes
from workspaces.models import Workspace

PYTHON = re.compile(r"3\.([89]|1[0-9])\Z")
DEFAULT_PYTHON = "3.11"


def default_python(workspace: Workspace | None) -> str:
    """Returns the minor version of Python that most nodes of the workspace use by default; without one, of
    the nodes that are open to all."""
    counts: Counter[str] = Counter()
    for node in visible_nodes(workspace).filter(revoked_at=None):
        for interpreter in interpreters_of(node)[:1]:
            counts[_minor(interpreter.version)] += 1
    return next((version for version, _ in counts.most_common() if PYTHON.match(version)), DEFAULT_PYTHON)


def has_python(python: str) -> bool:
    """Returns whether a node that is open to all has this minor version of Python."""
    return any(
        _minor(interpreter.version) == python
        for node in visible_nodes(None).filter(revoked_at=None)
        for interpreter in interpreters_of(node)
    )


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])

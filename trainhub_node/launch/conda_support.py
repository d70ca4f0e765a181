"""Whether this node makes conda environments: with rattler, which is never loaded into the agent."""

from __future__ import annotations

import functools
import platform
from importlib.util import find_spec


@functools.cache
def find_rattler() -> str:
    """Returns the folder of the package rattler in the agent's installation, "" if it cannot be used here.
    The packages of locks are those for x86-64."""
    spec = find_spec("rattler") if platform.machine() == "x86_64" else None
    return spec.submodule_search_locations[0] if spec and spec.submodule_search_locations else ""

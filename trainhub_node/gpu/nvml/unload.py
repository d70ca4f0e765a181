"""Unloading the NVML library from pynvml, which has no public way to do it."""

from __future__ import annotations

import _ctypes
import logging
from ctypes import CDLL
from functools import cache
from types import ModuleType

log = logging.getLogger(__name__)
# The names in pynvml of the loaded library and of its functions, by name. Neither is part of its interface.
LIBRARY, FUNCTIONS = "nvmlLib", "_nvmlGetFunctionPointer_cache"


def unload(binding: ModuleType) -> bool:
    """Unloads NVML, so that the next `nvmlInit` loads the new version: after a driver update the old one
    keeps failing.

    Returns False, and changes nothing, if this version of pynvml stores its library in another way. The
    agent must then be restarted after a driver update."""
    library, functions = getattr(binding, LIBRARY, None), getattr(binding, FUNCTIONS, None)
    handle = getattr(library, "_handle", None)
    if not isinstance(library, CDLL) or not isinstance(functions, dict) or not isinstance(handle, int):
        _log_unknown(str(getattr(binding, "__file__", binding.__name__)))
        return False
    functions.clear()
    setattr(binding, LIBRARY, None)
    _ctypes.dlclose(handle)
    return True


@cache
def _log_unknown(where: str) -> None:
    """Logs that NVML cannot be unloaded, once, because the agent retries every few seconds."""
    log.error(
        "The driver was updated, and its old library cannot be unloaded: %s does not store it as "
        "%s and %s. "
        "Restart the agent; runs continue.",
        where,
        LIBRARY,
        FUNCTIONS,
    )

"""What activating a conda environment changes in a process's variables, found once when it is built."""

from __future__ import annotations

import os
import stat

# Under which the activation runs: whatever else is there afterwards comes from it.
BASE = {"PATH": "/usr/bin:/bin", "CONDA_SHLVL": "0"}
# What shells set themselves, and what is the build's own.
SHELL_VARIABLES = (
    "_",
    "PWD",
    "OLDPWD",
    "SHLVL",
    "PS1",
    "HOME",
    "TMPDIR",
    "USER",
    "LANG",
    "PIP_CACHE_DIR",
    "PYTHONUNBUFFERED",
)
MAX_BYTES = 256 * 1024
MAX_VARIABLES = 500


def read_changes(path: str, folder: str, owner: int) -> dict[str, str]:
    """Returns the variables that the activation has set, from the output of `env -0` in the file `path`;
    PATH has only the folders that it has added. Raises ValueError, also for a file that is not `owner`'s, and
    OSError."""
    # The builder, whose code is not trusted, wrote it.
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode) or facts.st_uid != owner:
            raise ValueError("its scripts have replaced the file for their result")
        data = os.read(file, MAX_BYTES + 1)
    finally:
        os.close(file)
    if len(data) > MAX_BYTES:
        raise ValueError(f"its scripts set more than {MAX_BYTES // 1024} KiB of variables")
    changes = {"CONDA_PREFIX": folder}
    for item in data.decode().split("\0"):
        name, separator, value = item.partition("=")
        if separator and name.isidentifier() and name not in SHELL_VARIABLES:
            changes[name] = value
    if len(changes) > MAX_VARIABLES:
        raise ValueError(f"its scripts set more than {MAX_VARIABLES} variables")
    base = BASE["PATH"].split(":")
    changes["PATH"] = ":".join(
        item for item in changes.get("PATH", "").split(":") if item and item not in base
    )
    return changes

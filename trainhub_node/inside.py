"""Opening files of a training script's own folder, where every name may be a trap."""

from __future__ import annotations

import os
import stat


class Outside(OSError):
    """The name leads to something that is not a regular file below the folder."""


def open_inside(root: str, path: str) -> int:
    """A descriptor to read the regular file at `path`. Raises Outside where links lead out of `root`, and OSError.

    Asked of the open file, not of its name: a name may change between the question and the use.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise Outside(f"{path} is not a regular file")
        there = os.readlink(f"/proc/self/fd/{fd}")
        if not there.startswith(f"{os.path.realpath(root)}/"):
            raise Outside(f"{path} leads out of the run's folder")
    except BaseException:
        os.close(fd)
        raise
    return fd

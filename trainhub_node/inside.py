"""Opening files of a training script's own folder, where every name may be a trap."""

from __future__ import annotations

import os
import stat


class Outside(OSError):
    """The name leads to something that is not a regular file below the folder."""


def open_inside(root: str, path: str, owner: int | None = None) -> int:
    """A descriptor to read the regular file at `path`. Raises Outside where links lead out of `root`, and OSError.

    `owner`: the account of the ranks where it is another than ours; files of others (hard links) are refused.

    Asked of the open file, not of its name: a name may change between the question and the use.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        facts = os.fstat(fd)
        if not stat.S_ISREG(facts.st_mode) or owner not in (None, facts.st_uid):
            raise Outside(f"{path} is not a regular file of the run")
        there = os.readlink(f"/proc/self/fd/{fd}")
        if not there.startswith(f"{os.path.realpath(root)}/"):
            raise Outside(f"{path} leads out of the run's folder")
    except BaseException:
        os.close(fd)
        raise
    return fd

"""Which files a run leaves in outputs/ and logs/."""

from __future__ import annotations

import os
import stat
from functools import partial

from trainhub_node.untrusted import beneath
from trainhub_node.untrusted.walk import walk_beneath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from trainhub_node.rundir import RunDir

MAX_PATH = 900
OUTPUTS = "outputs"
# Where files lie, and what comes before their paths there.
PREFIXES = {OUTPUTS: "", "logs": "logs/"}


def output_files(
    folder: RunDir, warn: Callable[[str], None], prefixes: Mapping[str, str] = PREFIXES
) -> Iterator[tuple[str, str]]:
    """Yields (name, path below the working folder) of every file to keep.

    Files below outputs/ are named by their path there, files below logs/ as `logs/<path>`."""
    names: set[str] = set()
    try:
        root = beneath.open_root(folder.work)
    except FileNotFoundError:
        return  # it ended before its source was unpacked
    try:
        for top, prefix in prefixes.items():
            for path, is_link in _files(root, top, warn):
                name = prefix + path[len(top) + 1 :]
                if not name.isprintable() or len(name) > MAX_PATH:
                    warn(f"{name!a} is not among the outputs: its name is too long or not plain text.")
                elif name in names:
                    warn(f"logs/{name[5:]} is not among the outputs: outputs/{name} has the same name.")
                elif is_link and _is_link_to_folder(root, path):
                    warn(f"{path} is a link to a folder; what is in it is not saved.")
                else:
                    names.add(name)
                    yield name, path
    finally:
        os.close(root)


def _files(root: int, top: str, warn: Callable[[str], None]) -> Iterator[tuple[str, bool]]:
    """Yields (path below `root`, whether it is a link) of everything in the folder `top` except folders."""
    try:
        mode = os.stat(top, dir_fd=root, follow_symlinks=False).st_mode
    except OSError:
        return  # a script may remove it
    if stat.S_ISLNK(mode):
        warn(f"{top} is a link; nothing in it is saved.")
    elif not stat.S_ISDIR(mode):
        warn(f"{top} is not a folder; it is not saved.")
    else:
        for folder in walk_beneath(root, top, max_path=MAX_PATH, on_error=partial(_warn_unreadable, warn)):
            yield from ((f"{folder.path}/{name}", name in folder.links) for name in folder.files)


def _is_link_to_folder(root: int, path: str) -> bool:
    """Returns whether a link leads to a folder below `root`; False for links that leave `root`."""
    try:
        entry = beneath.open_entry(root, path, follow_links=True)
    except OSError:
        return False
    try:
        return stat.S_ISDIR(os.fstat(entry).st_mode)
    finally:
        os.close(entry)


def _warn_unreadable(warn: Callable[[str], None], path: str, error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        warn(f"What is in the folder {path[:MAX_PATH]!a} is not saved: {error.strerror}.")

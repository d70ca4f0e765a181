"""The configured providers: folders in NODE_PROVIDERS with the programs `provision` and `release`."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from trainhub_launch.errors import LaunchError

VERBS = ("provision", "release")
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class ProviderError(LaunchError):
    """A provider cannot be used or failed; the message says why."""


@dataclass(frozen=True)
class Provider:
    name: str
    folder: Path

    def program(self, verb: str) -> Path:
        return self.folder / verb


def names() -> list[str]:
    """Returns the names of all provider folders, usable or not; forms report what is wrong with a folder."""
    root = _root()
    if root is None or not root.is_dir():
        return []
    return sorted(path.name for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))


def find(name: str) -> Provider:
    """Returns the checked provider. Only the hub's account and root may be able to change its programs,
    because these run as the hub's account. Raises ProviderError."""
    root = _root()
    if root is None:
        raise ProviderError("No node providers are configured: set NODE_PROVIDERS to their folder.")
    if name not in names():
        existing = ", ".join(names()) or "none"
        raise ProviderError(f"There is no provider {name!r} in {root}; there are: {existing}.")
    # Who may rename a parent folder can put another program in the place of the checked one.
    for parent in root.parents:
        _check_owner(parent, is_shared=True)
    for path in (root, root / name):
        _check_owner(path)
    for verb in VERBS:
        _check_program(root / name / verb)
    return Provider(name, root / name)


def _root() -> Path | None:
    return Path(settings.NODE_PROVIDERS) if settings.NODE_PROVIDERS else None


def _check_program(path: Path) -> None:
    if not path.exists():
        raise ProviderError(f"The provider lacks its program {path}.")
    _check_owner(path)
    if not path.is_file() or not os.access(path, os.X_OK):
        raise ProviderError(f"{path} must be an executable file.")


def _check_owner(path: Path, *, is_shared: bool = False) -> None:
    """Raises ProviderError unless only the hub's account and root may change the file or folder.

    `is_shared`: also accepts a folder with the sticky bit such as /tmp, where accounts cannot replace the
    files of others."""
    # lstat does not follow links: a link of the hub's account may point to a file of somebody else.
    info = path.lstat()
    if stat.S_ISLNK(info.st_mode):
        raise ProviderError(f"{path} is a link; a provider's folder and programs must not be links.")
    if info.st_uid not in (0, os.geteuid()):
        raise ProviderError(f"{path} belongs to another account; make the hub's account or root its owner.")
    if info.st_mode & WRITABLE_BY_OTHERS and not (is_shared and info.st_mode & stat.S_ISVTX):
        raise ProviderError(
            f"{path} can be changed by other accounts; take that away with: chmod go-w {path}"
        )

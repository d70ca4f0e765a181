"""The providers that an operator has set up: folders of NODE_PROVIDERS with the executables `provision` and
`release`."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from trainhub_launch.errors import LaunchError

VERBS = ("provision", "release")
OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


class ProviderError(LaunchError):
    """A provider that cannot be used, or that did not do what it was asked; the message says what and why."""


@dataclass(frozen=True)
class Provider:
    name: str
    folder: Path

    def program(self, verb: str) -> Path:
        return self.folder / verb


def names() -> list[str]:
    """Of all folders that stand there, usable or not: a form that offers one says what is wrong with it."""
    root = _root()
    if root is None or not root.is_dir():
        return []
    return sorted(path.name for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))


def find(name: str) -> Provider:
    """The provider, checked: whoever could change its programs could run anything as the hub's account.
    Raises ProviderError."""
    root = _root()
    if root is None:
        raise ProviderError("There are no node providers here: NODE_PROVIDERS names no folder.")
    if name not in names():
        known = ", ".join(names()) or "none"
        raise ProviderError(f"There is no provider {name!r} in {root}; there are: {known}.")
    for parent in root.parents:
        _check(parent, is_shared=True)
    for path in (root, root / name):
        _check(path)
    for verb in VERBS:
        _check_program(root / name / verb)
    return Provider(name, root / name)


def _root() -> Path | None:
    return Path(settings.NODE_PROVIDERS) if settings.NODE_PROVIDERS else None


def _check_program(path: Path) -> None:
    if not path.exists():
        raise ProviderError(f"The provider lacks its program {path}.")
    _check(path)
    if not path.is_file() or not os.access(path, os.X_OK):
        raise ProviderError(f"{path} must be an executable file.")


def _check(path: Path, *, is_shared: bool = False) -> None:
    """`is_shared`: a folder such as /tmp, where everybody may write and nobody may replace what is another's,
    will do."""
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise ProviderError(
            f"{path} is a link; a provider's folder and programs must stand there themselves."
        )
    if found.st_uid not in (0, os.geteuid()):
        raise ProviderError(
            f"{path} belongs to another account than the hub's; nobody else may be able to change a provider."
        )
    if found.st_mode & OTHERS_MAY_WRITE and not (is_shared and found.st_mode & stat.S_ISVTX):
        raise ProviderError(
            f"{path} can be changed by other accounts; take that away with: chmod go-w {path}"
        )

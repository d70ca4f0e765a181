"""Modules that are compiled after an environment is ready, while runs use it.

The marker `interpreter.UNCOMPILED` in the environment says so. Until its modules are compiled, the folders of
compiled ones belong to the account that installs, and runs as nothing else; then they are given to this one.
A run that imports a module before compiles it in its own memory."""

from __future__ import annotations

import os
from contextlib import suppress

from trainhub_node import records
from trainhub_node.environments import bytecode, interpreter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class UncompiledModules:
    """What the marker of an environment says: the base interpreter, the folder of compiled modules ("" if
    there is none that lasts), and the user id that installs, None for this account."""

    def __init__(self, python: str, store: str, account: int | None) -> None:
        self.python = python
        self.store = store
        self.account = account

    def write(self, folder: str) -> None:
        """Marks the environment. Raises OSError."""
        record = {"python": self.python, "store": self.store, "account": self.account}
        records.write(f"{folder}/{interpreter.UNCOMPILED}", record, patient=False)


def read_marker(folder: str) -> UncompiledModules | None:
    """Returns what the marker of the environment says; None without one."""
    record = records.read(f"{folder}/{interpreter.UNCOMPILED}")
    return UncompiledModules(record["python"], record["store"], record["account"]) if record else None


def compile_command(mode: str, python: str, folder: str, store: str) -> list[str]:
    """Returns the command that compiles the modules of the environment in `folder`.

    Without `site`, which would execute lines of packages' .pth files."""
    return [python, "-I", "-S", "-W", "ignore", bytecode.__file__, mode, folder, store]


def finish_modules(folder: str) -> None:
    """Gives the folders of compiled modules to this account, and removes the marker. Nothing of the installer
    compiles any more. Raises OSError."""
    owner, group = os.geteuid(), os.getegid()
    for path in _compiled_folders(folder):
        os.chown(path, owner, group, follow_symlinks=False)
    with suppress(FileNotFoundError):
        os.unlink(f"{folder}/{interpreter.UNCOMPILED}")


def _compiled_folders(folder: str) -> Iterator[str]:
    for path, folders, _ in os.walk(f"{folder}/lib"):
        if bytecode.FOLDER in folders:
            folders.remove(bytecode.FOLDER)
            yield f"{path}/{bytecode.FOLDER}"

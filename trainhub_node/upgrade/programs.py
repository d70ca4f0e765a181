"""The folders of node programs, and how one is installed there: all of it, or nothing."""

from __future__ import annotations

import compileall
import os
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from trainhub_node import proc
from trainhub_node.bootstrap_command import PACKAGE
from trainhub_node.durable_files import sync_file_system, sync_folder
from trainhub_node.untrusted import removal
from trainhub_node.upgrade.program_record import ProgramRecord, is_private

UNFINISHED = ".new-"
ARCHIVE = "archive"
MAIN = "trainhub_node/__main__.py"
# What an archive may unpack to. The hub's is a tenth of it.
MAX_BYTES = 4 * 1024**3


class UnusableArchive(Exception):
    """The message is a sentence that says what is wrong with the archive."""


def program_name(version: str, sha256: str) -> str:
    """Returns the name of a program's folder. `version` is a plain one, see Upgrader."""
    return f"{version}-{sha256[:12]}"


def own_name(folder: Path) -> str:
    """Returns the name of the program to which this code belongs, "" for the installed package."""
    return PACKAGE.parent.name if PACKAGE.parent.parent == folder.resolve() else ""


def has_program(folder: Path, name: str) -> bool:
    """Returns whether this account has installed a whole program of that name there."""
    path = folder / name
    try:
        return (path / MAIN).is_file() and is_private(folder) and is_private(path)
    except OSError:
        return False


def install_program(folder: Path, archive: Path, name: str) -> None:
    """Makes the folder `name` of the archive. Raises UnusableArchive and OSError; nothing is left then."""
    aside = folder / f"{UNFINISHED}{name}"
    removal.remove_tree(str(aside))
    try:
        _unpack(archive, aside)
        if not (aside / MAIN).is_file():
            raise UnusableArchive("it has no node program")
        # Runs may not write here, so the modules are compiled now.
        compileall.compile_dir(str(aside), quiet=2)
        sync_file_system(str(aside))
        removal.remove_tree(str(folder / name))
        aside.rename(folder / name)
        sync_folder(folder)
    finally:
        removal.remove_tree(str(aside))


def sweep_programs(folder: Path, record: ProgramRecord) -> None:
    """Removes programs that neither the record names nor a process uses, and what was interrupted. Raises
    OSError."""
    if not folder.is_dir():
        return
    # The command lines of processes have it without links.
    folder = folder.resolve()
    needed = {record.current, record.previous, record.trial, own_name(folder)}
    others = [path for path in folder.iterdir() if path.is_dir() and path.name not in needed]
    lines = list(_command_lines()) if others else []
    for path in others:
        if not any(os.fsencode(f"{path}/") in line for line in lines):
            removal.remove_tree(str(path))
    if record.outcome:
        (folder / ARCHIVE).unlink(missing_ok=True)
        (folder / f"{ARCHIVE}.part").unlink(missing_ok=True)


def _command_lines() -> Iterator[bytes]:
    """Yields those of all processes. The children of attempts name the program that started them."""
    for process in proc.list_processes():
        line = proc.read(f"/proc/{process.pid}/cmdline")
        if line:
            yield line


def _unpack(archive: Path, to: Path) -> None:
    size = 0
    to.mkdir(mode=0o755)
    try:
        with tarfile.open(archive, "r:gz") as members:
            for member in members:
                size += member.size
                if size > MAX_BYTES:
                    raise UnusableArchive(f"it unpacks to more than {MAX_BYTES >> 30} GiB")
                content = members.extractfile(member) if member.isreg() else None
                if content is None:
                    raise UnusableArchive(f"{member.name!r} in it is no file")
                target = to / _plain_path(member.name)
                target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
                with content, target.open("wb") as file:
                    shutil.copyfileobj(content, file)
                target.chmod(0o755 if member.mode & 0o100 else 0o644)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise UnusableArchive(f"it cannot be unpacked: {error}") from error
    for path in (to, *to.rglob("*")):
        # The agent's own files are private, but accounts of runs read the libraries in here.
        if path.is_dir():
            path.chmod(0o755)


def _plain_path(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if not path.parts or path.is_absolute() or ".." in path.parts:
        raise UnusableArchive(f"{name!r} in it leads elsewhere")
    return path

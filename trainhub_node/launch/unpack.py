"""Unpacks a snapshot's zip into a new working folder. Rejects hostile archives again, as the hub did
before."""

from __future__ import annotations

import os
import shutil
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from trainhub_node.run_account import Account
from trainhub_node.untrusted import removal

FOLDERS = ("outputs", "logs")


class BadSnapshot(Exception):
    """The message is a sentence for the owner of the snapshot."""


def unpack_snapshot(
    archive: Path, work: Path, account: Account | None, *, add: Callable[[Path], None] | None = None
) -> int:
    """Fills `work` from `archive` completely or not at all, and gives it to `account`; returns the number of
    files. `add` puts more into the folder that it gets.

    Raises BadSnapshot, and OSError. Until the last step the folder belongs to this process and is closed
    to all other accounts, because from then on any name in it may become a link."""
    aside = work.with_name(f"{work.name}.part")
    removal.remove_tree(str(aside))
    aside.mkdir(mode=0o700)
    try:
        count = _fill(archive, aside, account)
        if add is not None:
            add(aside)
        if account is not None:
            _give_folders(aside, account)
        # A rename is all or nothing: after a crash there is either the whole source or the folder `.part`,
        # which the next try removes.
        aside.rename(work)
    except BaseException:
        removal.remove_tree(str(aside))
        raise
    return count


def _fill(archive: Path, folder: Path, account: Account | None) -> int:
    try:
        with zipfile.ZipFile(archive) as source:
            entries = [entry for entry in source.infolist() if not entry.is_dir()]
            for entry in entries:
                _extract(source, entry, folder, account)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        # What `zipfile` raises for damaged, encrypted and unknown kinds of entries.
        raise BadSnapshot(f"its zip is damaged: {error}") from error
    for name in FOLDERS:
        if not (folder / name).exists():
            (folder / name).mkdir(mode=0o700)
    return len(entries)


def _extract(source: zipfile.ZipFile, entry: zipfile.ZipInfo, folder: Path, account: Account | None) -> None:
    path = PurePosixPath(entry.filename)
    if path.is_absolute() or ".." in path.parts or "\\" in entry.filename:
        raise BadSnapshot(f"the path {entry.filename!r} leads out of it")
    mode = entry.external_attr >> 16
    # Zip stores Unix modes in the upper 16 bits; 0 is an archive from a system without them. Links and
    # devices are refused, because they could lead out of the folder or block a reader.
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        raise BadSnapshot(f"{entry.filename!r} is not an ordinary file")
    target = folder.joinpath(*path.parts)
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # O_EXCL and O_NOFOLLOW: an archive with the same name twice must not write through what its first
        # entry made.
        fd = os.open(
            target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o700 if mode & 0o111 else 0o600
        )
    except (FileExistsError, NotADirectoryError) as error:
        raise BadSnapshot(f"{entry.filename!r} is there twice, or is both a file and a folder") from error
    with source.open(entry) as data, os.fdopen(fd, "wb") as file:
        shutil.copyfileobj(data, file, 1024 * 1024)
        if account is not None:
            os.fchown(file.fileno(), account.uid, account.gid)


def _give_folders(top: Path, account: Account) -> None:
    """Changes the owner from the innermost folders outwards: until the last step no other account can
    enter, and change what a path below means."""
    for path, _, _ in os.walk(top, topdown=False):
        os.chown(path, account.uid, account.gid, follow_symlinks=False)

"""A snapshot's zip into a fresh working folder. The hub has refused hostile zips; this refuses them again."""

from __future__ import annotations

import os
import shutil
import stat
import zipfile
from pathlib import Path, PurePosixPath

from trainhub_node.settings import Account

FOLDERS = ("outputs", "logs")


class BadSnapshot(Exception):
    """The message is a sentence for whoever made the snapshot."""


def unpack(archive: Path, work: Path, account: Account | None) -> int:
    """Fill `work` from `archive`, whole or not at all; the number of files. Raises BadSnapshot."""
    aside = work.with_name(f"{work.name}.part")
    if aside.exists():
        shutil.rmtree(aside)
    aside.mkdir(mode=0o700)
    try:
        with zipfile.ZipFile(archive) as source:
            entries = [entry for entry in source.infolist() if not entry.is_dir()]
            for entry in entries:
                _extract(source, entry, aside)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise BadSnapshot(f"its zip is damaged: {error}") from error
    for name in FOLDERS:
        folder = aside / name
        if not folder.exists():
            folder.mkdir(mode=0o700)
    if account is not None:
        _give(aside, account)
    aside.rename(work)
    return len(entries)


def _extract(source: zipfile.ZipFile, entry: zipfile.ZipInfo, folder: Path) -> None:
    path = PurePosixPath(entry.filename)
    if path.is_absolute() or ".." in path.parts or "\\" in entry.filename:
        raise BadSnapshot(f"the path {entry.filename!r} leads out of it")
    mode = entry.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        raise BadSnapshot(f"{entry.filename!r} is not an ordinary file")
    target = folder.joinpath(*path.parts)
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o700 if mode & 0o111 else 0o600)
    except (FileExistsError, NotADirectoryError) as error:
        raise BadSnapshot(f"{entry.filename!r} is there twice, or is both a file and a folder") from error
    with source.open(entry) as data, os.fdopen(fd, "wb") as file:
        shutil.copyfileobj(data, file, 1024 * 1024)


def _give(folder: Path, account: Account) -> None:
    os.chown(folder, account.uid, account.gid)
    for path, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chown(Path(path, name), account.uid, account.gid, follow_symlinks=False)

"""An uploaded zip as a source. Its content is untrusted, so everything is checked before use."""

from __future__ import annotations

import stat
import struct
import zipfile
from functools import partial
from typing import IO

from django.conf import settings

from jobs.sources.folders import SourceTree
from jobs.sources.ignore_rules import IgnoreRules, load_rules
from jobs.sources.source_files import (
    UNREADABLE,
    SnapshotError,
    SourceEntry,
    check_all,
    check_file_count,
    check_path,
    read_chunks,
)

# A zip bomb unpacks to far more than its own size. Small sources may repeat themselves that much, too.
MAX_RATIO = 200
RATIO_MATTERS_FROM = 8 * 2**20
END = b"PK\x05\x06"
DIRECTORY_ENTRY = b"PK\x01\x02"
ZIP64_LOCATOR = b"PK\x06\x07"
PACK_AGAIN = "pack the folder again as a plain zip file"


def read_zip(file: IO[bytes]) -> SourceTree:
    """Returns the files of a zip without those that its ignore file excludes. Raises SnapshotError."""
    _check_directory(file)
    try:
        archive = zipfile.ZipFile(file)
    except UNREADABLE as error:
        raise SnapshotError(f"it is not a readable zip file ({error}); {PACK_AGAIN}") from error
    # `is_dir()` would fail on an entry without a name.
    infos = [info for info in archive.infolist() if not info.filename.endswith("/")]
    for info in infos:
        _check(info)
    _check_ratio(infos)
    entries = [_entry(archive, info) for info in infos]
    check_all(entries)
    # The built-in rules apply first: macOS adds a folder of its own (__MACOSX) beside the real one.
    candidates = _without_top_folder([entry for entry in entries if not IgnoreRules().is_ignored(entry.path)])
    by_path = {entry.path: entry for entry in candidates}
    ignored = load_rules(lambda name: read_chunks(by_path[name]) if name in by_path else None)
    remaining = tuple(entry for entry in candidates if not ignored.is_ignored(entry.path))
    return SourceTree(remaining, len(entries) - len(remaining), ignored)


def _check_directory(file: IO[bytes]) -> None:
    """Checks the declared size of the zip's directory before zipfile reads all of it into memory."""
    size = file.seek(0, 2)
    if size > settings.MAX_SNAPSHOT_BYTES:
        limit = settings.MAX_SNAPSHOT_BYTES / 2**20
        raise SnapshotError(
            f"the zip is larger than the {limit:.0f} MiB allowed; leave data out with a .trainhubignore file"
        )
    # The end record has 22 bytes and a comment of at most 65,535; a Zip64 locator of 20 bytes may precede it.
    begin = max(0, size - 65557 - 20)
    file.seek(begin)
    tail = file.read()
    end_record = tail.rfind(END)
    if end_record < 0 or len(tail) < end_record + 22:
        raise SnapshotError(f"it is not a zip file, or it was cut off; {PACK_AGAIN}")
    if tail[max(0, end_record - 20) :].startswith(ZIP64_LOCATOR):
        raise SnapshotError(f"it uses the Zip64 format, which holds more than is allowed here; {PACK_AGAIN}")
    # The total number of entries (16 bits) and the size of the directory in bytes (32 bits).
    count, directory = struct.unpack_from("<HL", tail, end_record + 10)
    check_file_count(count)
    if directory > settings.MAX_SNAPSHOT_FILES * 300 + 2**20:
        raise SnapshotError(
            "its list of files is larger than is allowed; leave some out with a .trainhubignore file"
        )
    # The declared count may be wrong: zipfile reads as many entries as the directory holds.
    file.seek(max(0, begin + end_record - directory))
    check_file_count(file.read(directory).count(DIRECTORY_ENTRY))
    file.seek(0)


def _check(info: zipfile.ZipInfo) -> None:
    # zipfile cuts names at NUL; `orig_filename` is the name as stored in the archive.
    check_path(info.orig_filename)
    # Bit 0 of the flags marks an encrypted entry.
    if info.flag_bits & 0x1:
        raise SnapshotError(f"{info.filename!r} is encrypted; pack the folder without a password")
    mode = info.external_attr >> 16
    # Zips from systems without Unix modes have 0 here.
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        kind = "a link" if stat.S_ISLNK(mode) else "a special file"
        raise SnapshotError(f"{info.filename!r} is {kind}; put the file itself there")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise SnapshotError(f"{info.filename!r} is packed by a method that is not supported; {PACK_AGAIN}")


def _check_ratio(infos: list[zipfile.ZipInfo]) -> None:
    unpacked = sum(info.file_size for info in infos)
    packed = sum(info.compress_size for info in infos)
    if unpacked > RATIO_MATTERS_FROM and unpacked > MAX_RATIO * max(packed, 1):
        raise SnapshotError(
            "it unpacks to more than 200 times its size, as no source code does; leave data files out"
        )


def _entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> SourceEntry:
    executable = bool((info.external_attr >> 16) & 0o100)
    return SourceEntry(
        path=info.filename, size=info.file_size, executable=executable, open=partial(archive.open, info)
    )


def _without_top_folder(entries: list[SourceEntry]) -> list[SourceEntry]:
    """Removes the top folder if all files are in a single one, as file managers pack a folder itself.

    A Python package stays as it is, because scripts need its name.
    """
    tops = {entry.path.split("/", 1)[0] for entry in entries}
    if len(tops) != 1 or any("/" not in entry.path for entry in entries):
        return entries
    top = tops.pop()
    if any(entry.path == f"{top}/__init__.py" for entry in entries):
        return entries
    return [
        SourceEntry(entry.path[len(top) + 1 :], entry.size, entry.executable, entry.open) for entry in entries
    ]

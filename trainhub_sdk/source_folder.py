"""A folder as the source of a run: read, checked and packed as the zip that the hub takes."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, NamedTuple

from trainhub_sdk.errors import FolderRefused, FolderTooLarge
from trainhub_sdk.ignore_rules import IGNORE_FILES, IgnoreRules, load_rules

MEMORY_BYTES = 8 * 1024 * 1024
# Zip knows no earlier time. All files get it, so that the same content always gives the same zip.
OLDEST = (1980, 1, 1, 0, 0, 0)
PIECE_BYTES = 1024 * 1024
OFFENDERS = 3


class SourceLimits(NamedTuple):
    """What a hub takes as one source; the defaults hold unless its operator has changed them."""

    files: int = 20_000
    size_bytes: int = 512 * 2**20


DEFAULT_LIMITS = SourceLimits()


class SourceFile(NamedTuple):
    path: str
    size: int
    is_executable: bool


def list_files(folder: Path, limits: SourceLimits = DEFAULT_LIMITS) -> list[SourceFile]:
    """Returns the files that are sent, sorted. Raises FolderRefused if the folder cannot be a source, and
    FolderTooLarge with the folders that hold most."""
    root = folder.resolve()
    if not root.is_dir():
        raise FolderRefused(f"{folder} is not a folder.")
    try:
        files = []
        for file in _walk(root, load_rules(root)):
            files.append(file)
            if len(files) > 5 * limits.files:
                break  # perhaps it is the home folder
    except OSError as error:
        raise FolderRefused(f"{error.filename} cannot be read: {error.strerror}. Leave it out.") from error
    if len(files) > limits.files:
        approximately = "more than " if len(files) > 5 * limits.files else ""
        count = min(len(files), 5 * limits.files)
        raise FolderTooLarge(
            f"{folder} has {approximately}{count:,} files, and {limits.files:,} are allowed. Most are in "
            f"{_largest(Counter(_top(file.path) for file in files), '{:,} files')}. {_remedy()}"
        )
    total = sum(file.size for file in files)
    if total > limits.size_bytes:
        sizes: Counter[str] = Counter()
        for file in files:
            sizes[_top(file.path)] += file.size
        in_mb = Counter({name: size // 10**6 for name, size in sizes.items()})
        raise FolderTooLarge(
            f"{folder} has {total / 1e6:,.0f} MB, and {limits.size_bytes / 1e6:,.0f} MB are allowed. Most is "
            f"in {_largest(in_mb, '{:,} MB')}. {_remedy()}"
        )
    return sorted(files)


def pack(
    folder: Path, extra: Mapping[str, bytes] | None = None, limits: SourceLimits = DEFAULT_LIMITS
) -> IO[bytes]:
    """Returns a zip of the folder, at its beginning; in memory unless it is large. `extra`: the content of
    further files by path. Raises FolderRefused."""
    root = folder.resolve()
    added = dict(extra or {})
    files = [file for file in list_files(folder, limits) if file.path not in added]
    ignored = next(filter(load_rules(root).is_ignored, added), None)
    if ignored is not None:
        raise FolderRefused(f"The run needs the file {ignored}: end the ignore file with the line !{ignored}")
    packed: IO[bytes] = tempfile.SpooledTemporaryFile(MEMORY_BYTES)  # noqa: SIM115 - returned
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for file in files:
            info = zipfile.ZipInfo(file.path, OLDEST)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (0o755 if file.is_executable else 0o644) << 16
            # Says whether the entry needs the form for more than 4 GiB.
            info.file_size = file.size
            try:
                with (root / file.path).open("rb") as source, archive.open(info, "w") as entry:
                    shutil.copyfileobj(source, entry, PIECE_BYTES)
            except OSError as error:
                raise FolderRefused(f"{file.path} cannot be read: {error.strerror}.") from error
        for path, content in sorted(added.items()):
            archive.writestr(zipfile.ZipInfo(path, OLDEST), content)
        if not added and len({file.path.split("/")[0] for file in files}) == 1 and "/" in files[0].path:
            # The hub takes the only folder of a zip as a wrapping, and this one is a part of the paths.
            archive.writestr(zipfile.ZipInfo(IGNORE_FILES[0], OLDEST), b"")
    packed.seek(0)
    return packed


def _walk(root: Path, rules: IgnoreRules) -> Iterator[SourceFile]:
    def raise_error(error: OSError) -> None:
        raise error

    for parent, folders, names in os.walk(root, onerror=raise_error):
        below = os.path.relpath(parent, root).replace(os.sep, "/")
        prefix = "" if below == "." else f"{below}/"
        folders[:] = sorted(name for name in folders if not rules.skips_folder(prefix + name))
        links = [name for name in folders if os.path.islink(os.path.join(parent, name))]
        if links and not rules.is_ignored(f"{prefix}{links[0]}/"):
            raise FolderRefused(
                f"{prefix}{links[0]} is a link to a folder: copy the folder there, or leave it out in "
                f"{IGNORE_FILES[0]}."
            )
        folders[:] = [name for name in folders if name not in links]
        for name in sorted(names):
            if not rules.is_ignored(prefix + name):
                yield _file(root, prefix + name)


def _file(root: Path, path: str) -> SourceFile:
    full = root / path
    try:
        real = full.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise FolderRefused(f"{path} is a link to nothing: remove it, or leave it out.") from error
    if root not in real.parents:
        raise FolderRefused(f"{path} is a link that leads out of the folder: copy the file there.")
    facts = real.stat()
    if not stat.S_ISREG(facts.st_mode):
        raise FolderRefused(f"{path} is not a regular file: leave it out in {IGNORE_FILES[0]}.")
    return SourceFile(path, facts.st_size, bool(facts.st_mode & 0o100))


def _top(path: str) -> str:
    return f"{path.split('/', maxsplit=1)[0]}/" if "/" in path else path


def _largest(counts: Counter[str], words: str) -> str:
    return ", ".join(f"{name} ({words.format(count)})" for name, count in counts.most_common(OFFENDERS))


def _remedy() -> str:
    return f"Name what the run does not need in {IGNORE_FILES[0]}, as in .gitignore; data comes as inputs."

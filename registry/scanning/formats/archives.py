"""Scans archives: tar, and zip, which many formats of models are based on."""

from __future__ import annotations

import io
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import PurePosixPath, PureWindowsPath
from typing import IO, cast

from registry.scanning.formats import keras, skops
from registry.scanning.formats.source import Source, Unreadable
from registry.scanning.verdict_names import CLEAN, DANGEROUS, NOT_SCANNED, Verdict, combine

Judge = Callable[[Source], Verdict]
ZIP = b"PK\x03\x04"
EMPTY_ZIP = b"PK\x05\x06"
_TORCH_PICKLE = re.compile(r"(?P<root>(?:[^/]+/)?)data\.pkl")
_TORCH_SMALL = frozenset(
    {"version", "byteorder", ".format_version", ".storage_alignment", ".data/serialization_id"}
)
MAX_IN_MEMORY = 16 * 2**20
KERAS_WEIGHTS = "model.weights.h5"
LEADS_OUT = "Unpacking it writes outside of its folder: a member is called {}."
# Members whose verdicts are kept; the worst of the others is kept too.
MAX_PARTS = 2000


def is_tar(head: bytes) -> bool:
    """Whether the first 512 bytes are the header of a tar archive, of any variant."""
    if len(head) < tarfile.BLOCKSIZE:
        return False
    try:
        # frombuf() verifies the checksum of the header: the oldest kind of tar has no signature.
        tarfile.TarInfo.frombuf(head[: tarfile.BLOCKSIZE], "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def scan_zip(source: Source, judge: Judge) -> Verdict:
    with source.open() as file, zipfile.ZipFile(file) as archive:
        members = [item for item in archive.infolist() if not item.is_dir()]
        names = [item.filename for item in members]
        is_weight = _weights(names)
        parts = [(name, _leads_out(name)) for name in names if _is_outside(name)]
        parts += _special(source, names, archive)
        for item in members:
            inner = source.inner(item.filename, _opener(archive, item), item.file_size)
            # Bit 0 of the flags marks an encrypted member.
            verdict = _encrypted() if item.flag_bits & 1 else judge(inner)
            if verdict.verdict != DANGEROUS and is_weight(item.filename):
                # The framework reads these as numbers, whatever their first bytes look like.
                verdict = Verdict(CLEAN)
            _keep(parts, item.filename, verdict)
    return combine(parts)


def scan_tar(source: Source, judge: Judge) -> Verdict:
    parts: list[tuple[str, Verdict]] = []
    with ExitStack() as stack:
        file = stack.enter_context(source.open())
        # `r:` reads plain tars only: `file_scan` unpacks compressed ones, and counts what they unpack to.
        archive = stack.enter_context(tarfile.open(fileobj=file, mode="r:"))
        for item in _tar_members(archive):
            # Through a link that leads out, a later member with a harmless name would be written outside of
            # the folder.
            if _is_outside(item.name) or ((item.issym() or item.islnk()) and _is_outside(_target(item))):
                _keep(parts, item.name, _leads_out(item.name))
            if item.isreg():
                _keep(parts, item.name, judge(_tar_member(source, archive, item)))
            elif not (item.isdir() or item.issym() or item.islnk()):
                _keep(parts, item.name, Verdict(NOT_SCANNED, note="A device or a special file."))
        # tarfile stops silently at a damaged header, so everything after the last member must be zeros.
        file.seek(archive.offset)
        while data := file.read(1024 * 1024):
            if data.strip(b"\0"):
                raise Unreadable(
                    "Something follows the end of the tar archive, or it is damaged in the middle."
                )
    return combine(parts)


def _tar_member(source: Source, archive: tarfile.TarFile, item: tarfile.TarInfo) -> Source:
    """Returns a member. A small one is read into memory, because seeking back in a compressed tar unpacks it
    again from the start."""
    if item.size > MAX_IN_MEMORY:
        return source.inner(item.name, lambda: _extracted(archive, item), item.size)
    data = _extracted(archive, item).read()
    return source.inner(item.name, lambda: io.BytesIO(data), len(data))


def _tar_members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yields the members in their order. A truncated tar raises an error instead of ending early."""
    while (item := archive.next()) is not None:
        # Nothing is looked up by name: what was read need not be remembered.
        archive.members.clear()  # type: ignore[attr-defined]
        yield item


def _extracted(archive: tarfile.TarFile, item: tarfile.TarInfo) -> IO[bytes]:
    # None is only for members without content, such as folders; this one is a regular file.
    return cast("IO[bytes]", archive.extractfile(item))


# A function of its own binds `item`; a lambda in the loop would open the loop's last member.
def _opener(archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> Callable[[], IO[bytes]]:
    return lambda: archive.open(item)


def _special(source: Source, names: list[str], archive: zipfile.ZipFile) -> list[tuple[str, Verdict]]:
    """Returns verdicts on configuration files that decide what loading the whole archive does."""

    def inner(name: str) -> Source:
        return source.inner(name, _opener(archive, archive.getinfo(name)), archive.getinfo(name).file_size)

    parts = []
    if "config.json" in names and (source.extension == ".keras" or "metadata.json" in names):
        parts.append(("config.json", keras.scan_config(inner("config.json"))))
    if "schema.json" in names:
        parts.append(("schema.json", skops.scan_schema(inner("schema.json"))))
    return parts


def _weights(names: list[str]) -> Callable[[str], bool]:
    """Returns a function that tells which members a framework reads as numbers or short text: for PyTorch
    those beside a data.pkl, for Keras its weights."""
    is_keras = {"config.json", "metadata.json"} <= set(names)
    roots = {match["root"] for name in names if (match := _TORCH_PICKLE.fullmatch(name))}

    def is_weight(name: str) -> bool:
        if is_keras and name == KERAS_WEIGHTS:
            return True
        for root in roots:
            rest = name.removeprefix(root)
            if name.startswith(root) and (re.fullmatch(r"data/\d+", rest) or rest in _TORCH_SMALL):
                return True
        return False

    return is_weight


def _is_outside(name: str) -> bool:
    """Whether unpacking a member of that name may write outside of the target folder."""
    windows = PureWindowsPath(name)
    return PurePosixPath(name).is_absolute() or bool(windows.drive or windows.root) or ".." in windows.parts


def _target(item: tarfile.TarInfo) -> str:
    """Returns the path that a link points to, relative to the top of the archive. Targets of hard links are
    stored in that form."""
    if item.islnk() or PurePosixPath(item.linkname).is_absolute():
        return item.linkname
    parts: list[str] = []
    for part in (PurePosixPath(item.name).parent / item.linkname).parts:
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def _keep(parts: list[tuple[str, Verdict]], name: str, verdict: Verdict) -> None:
    parts.append((name, verdict))
    if len(parts) > MAX_PARTS:
        parts[:] = [("", combine(parts))]


def _leads_out(name: str) -> Verdict:
    return Verdict(DANGEROUS, (name,), LEADS_OUT.format(name[:100]))


def _encrypted() -> Verdict:
    return Verdict(NOT_SCANNED, note="It is encrypted.")

"""Packages in one file, which a run's source gets in addition: nothing has to be installed in the job."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

_OLDEST = (1980, 1, 1, 0, 0, 0)


def job_archive(packages: Iterable[str], names: str, left_out: tuple[str, ...] = ()) -> bytes:
    """Returns a zip from which Python imports, always the same for the same version.

    `names`: the folder below which lie the modules that scripts import by other names, which are moved to
    the top; `left_out`: folders that jobs do not need."""
    buffer = io.BytesIO()
    # Not compressed: another version of zlib would give another snapshot, and every process reads it.
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in sorted(_files(packages, names, left_out)):
            archive.writestr(zipfile.ZipInfo(name, _OLDEST), content)
    return buffer.getvalue()


def python_path(own: str, file_name: str) -> str:
    """Returns the variable PYTHONPATH of a run whose script sets `own`, with the archive `file_name`."""
    return f"{own}:{file_name}" if own else file_name


def _files(packages: Iterable[str], names: str, left_out: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    root = Path(__file__).resolve().parent.parent.parent
    for package in packages:
        for path in (root / package).rglob("*.py"):
            name = path.relative_to(root).as_posix()
            if not name.startswith(left_out):
                yield name[len(names) :] if name.startswith(names) else name, path.read_bytes()

"""Zips as no packing program makes them, and the sentence with which they are refused."""

from __future__ import annotations

import io
import stat
import zipfile

import pytest

from jobs.sources import snapshots
from jobs.sources.snapshots import SnapshotError
from workspaces.access import Principal


def refused(file: io.BytesIO, who: Principal) -> str:
    with pytest.raises(SnapshotError) as error:
        snapshots.from_zip(file, who)
    assert error.value.field == "source"
    return error.value.message


def with_entry(name: str, *, mode: int = stat.S_IFREG | 0o644, content: bytes = b"x") -> io.BytesIO:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("train.py", "print()")
        info = zipfile.ZipInfo("placeholder")
        info.filename = info.orig_filename = name
        info.create_system = 3
        info.external_attr = mode << 16
        archive.writestr(info, content)
    return out

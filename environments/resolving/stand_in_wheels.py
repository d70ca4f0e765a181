"""Wheels without content, which stand for packages that no index has: the resolver reads what they need."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Iterable
from pathlib import Path


def write_stand_in(folder: Path, name: str, version: str, metadata: Iterable[str] = ()) -> None:
    """Writes a wheel of this name and version. `metadata`: further lines of its metadata."""
    stem = f"{name.replace('-', '_')}-{version}"
    information = f"{stem}.dist-info"
    lines = ("Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *metadata, "")
    files = {
        f"{information}/METADATA": "\n".join(lines),
        f"{information}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = [f"{path},sha256={_digest(text)},{len(text.encode())}" for path, text in files.items()]
    files[f"{information}/RECORD"] = "\n".join((*record, f"{information}/RECORD,,", ""))
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()

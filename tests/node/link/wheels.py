"""A package made on the spot, so that building an environment needs no index."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path


def make(
    folder: Path,
    name: str = "tinylib",
    version: str = "1.0",
    *,
    needs: Sequence[str] = (),
    python: str = "",
    size: int = 0,
) -> str:
    """A wheel with one module that says its version, and has so many bytes at least; returns a requirement
    that pip can install."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}.py", f"VERSION = {version!r}\n{'#' * size}")
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        lines += [f"Requires-Dist: {item}" for item in needs]
        lines += [f"Requires-Python: {python}"] if python else []
        wheel.writestr(f"{info}/METADATA", "\n".join([*lines, ""]))
        wheel.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr(f"{info}/RECORD", "")
    return f"{name} @ {path.as_uri()}"

"""The code that a version came from: the frozen source of its run, and the functions in it that may make the
module."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from jobs.models import Snapshot
from registry.models import ModelVersion
from workspaces.stored_files import blobs

FUNCTION = re.compile(r"^def ([A-Za-z]\w{0,99})\(([^()]{0,500})\)", re.ASCII | re.MULTILINE)
MODULE = re.compile(r"[A-Za-z_]\w*(?:/[A-Za-z_]\w*)*\.py\Z", re.ASCII)
MOST_FILES, MOST_BYTES, MOST_FUNCTIONS = 100, 256 * 1024, 50


def source_of(version: ModelVersion) -> Path | None:
    """The zip; None of a version that was uploaded or logged from elsewhere, or where it is no longer
    kept."""
    sha256 = version.run.spec.get("source", {}).get("id", "") if version.run else ""
    found = (
        Snapshot.objects.filter(workspace=version.model.workspace, sha256=sha256).first() if sha256 else None
    )
    return blobs.path(found.sha256) if found is not None and blobs.exists(found.sha256) else None


def script_folder(version: ModelVersion) -> str:
    """Where Python looks for modules first: beside the script that was run."""
    script = str(version.run.spec.get("script", "")) if version.run else ""
    folder = PurePosixPath(script).parent.as_posix()
    return "" if folder == "." or folder.startswith(("/", "..")) else folder


def factories(version: ModelVersion) -> list[str]:
    """module:function of each function there that needs no argument. Read as text: nothing of it is run
    here."""
    source = source_of(version)
    if source is None:
        return []
    with zipfile.ZipFile(source) as archive:
        return list(_functions(archive, script_folder(version)))[:MOST_FUNCTIONS]


def _functions(archive: zipfile.ZipFile, folder: str) -> Iterator[str]:
    files = [
        info for info in archive.infolist() if MODULE.match(info.filename) and info.file_size <= MOST_BYTES
    ]
    for info in files[:MOST_FILES]:
        module = info.filename.removeprefix(f"{folder}/").removesuffix(".py").replace("/", ".")
        for name, parameters in FUNCTION.findall(archive.read(info).decode(errors="replace")):
            wanted = [part for part in parameters.split(",") if part.strip() and "=" not in part]
            if name != "main" and not wanted:
                yield f"{module}:{name}"

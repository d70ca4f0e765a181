"""The source that a version came from: the snapshot of its run, and functions in it that may make the
module."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from jobs.models import Snapshot
from jobs.sources.source_files import UNREADABLE
from registry.models import ModelVersion
from workspaces.stored_files import blob_cache, blobs

FUNCTION = re.compile(r"^def ([A-Za-z]\w{0,99})\(([^()]{0,500})\)", re.ASCII | re.MULTILINE)
MODULE = re.compile(r"[A-Za-z_]\w*(?:/[A-Za-z_]\w*)*\.py\Z", re.ASCII)
MAX_FILES, MAX_BYTES, MAX_FUNCTIONS = 100, 256 * 1024, 50


def source_of(version: ModelVersion) -> Path | None:
    """Returns the zip of the source; None if the version has no run with a source, or the zip is no longer
    stored."""
    sha256 = version.run.spec.get("source", {}).get("id", "") if version.run else ""
    artifact = (
        Snapshot.objects.filter(workspace=version.model.workspace, sha256=sha256).first() if sha256 else None
    )
    return (
        blob_cache.local_path(artifact.sha256)
        if artifact is not None and blobs.exists(artifact.sha256)
        else None
    )


def script_folder(version: ModelVersion) -> str:
    """Returns the folder of the run's script within the source, where Python looks for modules first; "" for
    the top folder."""
    script = str(version.run.spec.get("script", "")) if version.run else ""
    folder = PurePosixPath(script).parent.as_posix()
    return "" if folder == "." or folder.startswith(("/", "..")) else folder


def factories(version: ModelVersion) -> list[str]:
    """Returns "module:function" for each function in the source that needs no argument, and nothing if the
    stored source is damaged. The source is read as text and never run."""
    source = source_of(version)
    if source is None:
        return []
    try:
        with zipfile.ZipFile(source) as archive:
            return list(_functions(archive, script_folder(version)))[:MAX_FUNCTIONS]
    except UNREADABLE:
        # The form can still be filled; `bundle.pack` then refuses the export and says why.
        return []


def _functions(archive: zipfile.ZipFile, folder: str) -> Iterator[str]:
    files = [
        info for info in archive.infolist() if MODULE.match(info.filename) and info.file_size <= MAX_BYTES
    ]
    for info in files[:MAX_FILES]:
        module = info.filename.removeprefix(f"{folder}/").removesuffix(".py").replace("/", ".")
        for name, parameters in FUNCTION.findall(archive.read(info).decode(errors="replace")):
            required = [part for part in parameters.split(",") if part.strip() and "=" not in part]
            if name != "main" and not required:
                yield f"{module}:{name}"

"""Packs the source of an export's run: the export script, the request, and the source that the model came
from."""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import Any

from django.conf import settings

from jobs.models import Snapshot
from jobs.sources import snapshots
from jobs.sources.source_files import UNREADABLE, SnapshotError
from registry.errors import RegistryError
from registry.exports.notation import read_dynamic, read_inputs
from registry.exports.options import MLMODEL, Options, examples
from registry.exports.sources import script_folder, source_of
from registry.models import ModelFile, ModelVersion, ReferencedFile
from registry.transfer.file_responses import object_of
from workspaces.access import Principal
from workspaces.stored_files import blob_cache, blobs

SCRIPT = Path(__file__).parent / "script"
# Up to this size the files beside the chosen one travel with it: configurations, vocabularies.
SMALL_BYTES = 16 * 2**20
MAX_FILES = 200


def pack(version: ModelVersion, options: Options, who: Principal) -> Snapshot:
    """Returns the snapshot with which the export's run is submitted. Raises RegistryError if it cannot be
    packed."""
    temporary = Path(settings.DATA_DIR) / "tmp"
    temporary.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=temporary) as temporary_folder:
        folder = Path(temporary_folder)
        shutil.copytree(SCRIPT, folder, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        _unpack_source(version, folder / "source")
        example = _copy_example(version, options, folder / "example")
        request = export_request(version, options, example)
        (folder / "export.json").write_text(json.dumps(request, indent=1) + "\n")
        try:
            return snapshots.from_folder(folder, who)
        except SnapshotError as error:
            raise RegistryError(
                "file", f"the source of the export cannot be packed: {error.message}"
            ) from error


def export_request(version: ModelVersion, options: Options, example: str) -> dict[str, Any]:
    """Returns the content of export.json, which the script reads in onnx_export/request.py."""
    files = _files(version, options.file)
    return {
        "model": version.model.name,
        "version": version.number,
        "file": options.file,
        "factory": options.factory,
        "files": [
            {"path": file.path, "sha256": file.sha256, "size_bytes": file.size_bytes} for file in files
        ],
        "inputs": [asdict(item) for item in read_inputs(options.inputs)],
        "dynamic": read_dynamic(options.dynamic),
        "example": example,
        "relative": options.relative,
        "absolute": options.absolute,
        "opset": options.opset,
        "script_folder": script_folder(version),
    }


def _files(version: ModelVersion, chosen: str) -> list[ModelFile | ReferencedFile]:
    """Returns the files that the export downloads: for an MLmodel its whole folder, otherwise the chosen file
    and small files beside it. Raises RegistryError if the hub cannot read one of them in its datastore."""
    files = _candidates(version, chosen)
    for file in files:
        if isinstance(file, ReferencedFile) and (refusal := object_of(file).refusal):
            raise RegistryError("file", f"cannot be exported, because the run needs {file.path}. {refusal}")
    return files


def _candidates(version: ModelVersion, chosen: str) -> list[ModelFile | ReferencedFile]:
    files = version.all_files
    if PurePosixPath(chosen).name == MLMODEL:
        below = chosen.removesuffix(MLMODEL)
        return [file for file in files if file.path.startswith(below)]
    small = [file for file in files if file.path != chosen and file.size_bytes <= SMALL_BYTES]
    return [*(file for file in files if file.path == chosen), *small[:MAX_FILES]]


def _unpack_source(version: ModelVersion, folder: Path) -> None:
    source = source_of(version)
    if source is None:
        return
    try:
        # Its names were checked when it was frozen.
        with zipfile.ZipFile(source) as archive:
            archive.extractall(folder)
    except UNREADABLE as error:
        raise RegistryError(
            "file",
            f"the source of {version.run} is damaged on the hub's disk; restore {source} from a backup",
        ) from error


def _copy_example(version: ModelVersion, options: Options, folder: Path) -> str:
    """Copies the chosen example input to `folder` and returns its name there; "" if no file was chosen."""
    if not options.example:
        return ""
    file = examples(version)[options.example]
    if not blobs.exists(file.sha256):
        raise RegistryError(
            "example", f"the bytes of {options.example} are no longer on the hub; choose another file"
        )
    folder.mkdir()
    name = PurePosixPath(file.path).name
    shutil.copyfile(blob_cache.local_path(file.sha256), folder / name)
    return name

"""The manifest of a backup: what it is, and by what its list of files is verified."""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path

from trainhub.backup.errors import BackupError
from trainhub.backup.file_index import IndexSummary

NAME = "manifest.json"
FORMAT = 2


@dataclass(frozen=True)
class BackupManifest:
    """`name`: of the backup's folder, the time of its beginning (UTC). `version`: of the TrainHub that made
    it. `database`: "sqlite" or "postgresql". `migrations`: those applied, as app.name. `has_blobs`: False if
    they are only listed. `keys`: the names of the key files that the hub had. `excluded`: names in DATA_DIR
    that are not in the backup, and why. `missing`: hashes of files (the first thousand) that the database
    names and that the hub did not have, or only damaged; `missing_count`: how many. `object_store`: the place
    of BLOB_STORE, "" without one; `objects`, `object_bytes`: what it had; `has_objects`: whether these are
    in the backup, too, and not only by reference."""

    name: str
    version: str
    database: str
    database_version: str
    migrations: list[str]
    has_blobs: bool
    files: IndexSummary
    keys: list[str]
    excluded: dict[str, str]
    missing: list[str]
    missing_count: int
    finished_at: str
    object_store: str = ""
    objects: int = 0
    object_bytes: int = 0
    has_objects: bool = False
    format: int = FORMAT


def write_manifest(folder: Path, manifest: BackupManifest) -> None:
    """Writes the manifest as a whole or not at all."""
    aside = folder / f".{NAME}"
    with aside.open("w") as file:
        json.dump(dataclasses.asdict(manifest), file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    aside.replace(folder / NAME)


def read_manifest(folder: Path) -> BackupManifest:
    """Returns the manifest of the backup in `folder`. Raises BackupError if it is damaged, or of a newer
    format."""
    try:
        values = json.loads((folder / NAME).read_text())
        if values["format"] > FORMAT:
            raise BackupError(
                f"A newer TrainHub ({values['version']}) made the backup {folder}. Use it with that version."
            )
        return BackupManifest(**{**values, "files": IndexSummary(**values["files"])})
    except (ValueError, TypeError, KeyError) as error:
        raise BackupError(f"{folder / NAME} is damaged. Use another backup, and remove this one.") from error

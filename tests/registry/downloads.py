"""A version as somebody downloads it: unpacked into a folder, or as the zip."""

from __future__ import annotations

from pathlib import Path

from registry.certificates import issuance, keys
from registry.models import ModelVersion
from registry.verifying.trainhub_verify import VerificationReport, verify
from workspaces.stored_files import blobs, zip_stream


def folder_of(version: ModelVersion, folder: Path) -> Path:
    for file in version.files.all():
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(blobs.path(file.sha256).read_bytes())
    for name, data in issuance.documents(version).items():
        (folder / name).write_bytes(data)
    return folder


def zip_of(version: ModelVersion, path: Path) -> Path:
    entries = [
        zip_stream.ZipEntry(f"digits-1/{file.path}", blobs.path(file.sha256)) for file in version.files.all()
    ]
    entries += [
        zip_stream.ZipEntry(f"digits-1/{name}", data) for name, data in issuance.documents(version).items()
    ]
    path.write_bytes(b"".join(zip_stream.Archive(entries).pieces()))
    return path


def verified(path: Path) -> VerificationReport:
    """With the keys of this installation."""
    return verify(path, [key.fingerprint for key in keys.public_keys()])

"""Datasets with lists that no store was asked for."""

from __future__ import annotations

import io

from django.utils import timezone

from datastores.datasets import file_list
from datastores.models import Dataset, DatasetVersion, Datastore, Manifest
from datastores.states import ListingState
from trainhub_launch.data.manifests import ListedFile, ManifestWriter
from workspaces.models import Workspace
from workspaces.stored_files.blob_writer import BlobWriter

SETTINGS = {"bucket": "team-data"}


def dataset(workspace: Workspace, name: str = "birds", path: str = "2024") -> Dataset:
    datastore, _ = Datastore.objects.get_or_create(
        workspace=workspace, name="bucket", kind="s3", settings=SETTINGS
    )
    return Dataset.objects.create(workspace=workspace, name=name, datastore=datastore, path=path)


def manifest(*paths: str, size: int = 10) -> Manifest:
    """A list of files of this size, in no database."""
    buffer = io.BytesIO()
    writer = ManifestWriter(buffer)
    for path in paths:
        writer.write(ListedFile(path, size, f"etag of {path} {size}", 1_790_000_000.0))
    writer.flush()
    with BlobWriter() as blob:
        blob.write(buffer.getvalue())
        sha256 = blob.finish()
    return Manifest(sha256=sha256, size_bytes=buffer.tell(), starts=file_list.pack_starts(writer.starts))


def ready(dataset: Dataset, *paths: str, size: int = 10) -> DatasetVersion:
    """The next version, with a list of these files."""
    before = dataset.versions.select_related("manifest").first()
    made = manifest(*paths, size=size)
    version = DatasetVersion.objects.create(
        dataset=dataset,
        number=1 if before is None else before.number + 1,
        state=ListingState.READY,
        files=len(paths),
        bytes=len(paths) * size,
        differences={} if before is None else file_list.compare(before, made).to_json(),
        ended_at=timezone.now(),
    )
    made.version = version
    made.save()
    return version

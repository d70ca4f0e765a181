"""Versions of files that are stored already, so that nothing is uploaded."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from datastores.changes import require_contributor
from datastores.datasets import changes
from datastores.models import Dataset, DatasetVersion
from datastores.states import ListingState
from datastores.uploads import completion, file_rules, new_datasets, sessions
from trainhub_launch.data.manifests import ListedFile, content_sha256
from trainhub_launch.errors import SpecError
from workspaces.access import Principal
from workspaces.models import Workspace
from workspaces.stored_files import blobs


def add_stored_version(
    principal: Principal, name: str, datastore: str, files: Sequence[ListedFile], source: str
) -> DatasetVersion:
    """Makes the next version of the dataset `name`, or a dataset if there is none of this name, and shares
    the contents, which the caller holds. `datastore`: of the kind hub; "" for that of the dataset, or the
    workspace's first one. `files`, `source`: as for `hold_contents`. Raises SpecError, and
    PermissionDenied."""
    require_contributor(principal)
    with transaction.atomic():
        # The lock makes two requests with the same new name come one after the other.
        Workspace.objects.select_for_update().get(pk=principal.workspace.pk)
        dataset = Dataset.objects.filter(workspace=principal.workspace, name=name).first()
        if dataset is None:
            _check_datastore(principal.workspace, datastore)
            version = new_datasets.create(principal, name, "", datastore)
        else:
            version = changes.new_version(principal, _lock_dataset(dataset, datastore))
        completion.make_ready(version, files, source)
    return version


def hold_contents(files: Sequence[ListedFile], source: str) -> None:
    """Marks the contents as in use until a version names them. This takes seconds for many files, so no
    transaction should be open. `files`: each with `content_etag`; `source`: what has them, for messages.
    Raises SpecError for what a version cannot have."""
    for file in files:
        if wrong := file_rules.name_refusal(file.path):
            raise SpecError("path", f"{source} has {file.path!r:.300} there, and {wrong}")
        sha256 = content_sha256(file.etag)
        if not blobs.hold(sha256):
            raise SpecError("path", f"the bytes of {file.path} {blobs.absence(sha256)}")


def _check_datastore(workspace: Workspace, name: str) -> None:
    there = new_datasets.hub_datastores(workspace)
    if name and name not in there:
        listed = ", ".join(there[:20]) or "none yet; leave it out, and one is made"
        raise SpecError(
            "datastore", f"there is no datastore {name!r:.110} whose files the hub keeps; there are: {listed}"
        )


def _lock_dataset(dataset: Dataset, datastore: str) -> Dataset:
    """Returns the dataset, which can have another version. Raises SpecError."""
    locked = Dataset.objects.select_for_update().select_related("datastore").get(pk=dataset.pk)
    if refusal := changes.upload_refusal(locked.datastore):
        raise SpecError("name", f"of {locked} {refusal}; or choose another name")
    if datastore and datastore != locked.datastore.name:
        raise SpecError(
            "datastore",
            f"{locked} belongs to the datastore {locked.datastore}: leave it out, or choose another name",
        )
    waiting = locked.versions.filter(state=ListingState.UPLOADING).select_related("dataset", "created_by")
    if upload := waiting.first():
        raise SpecError("name", sessions.describe_upload(upload))
    return locked

"""Makes, refreshes, describes and deletes datasets."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from clusters.task_messages import send_task_soon
from datastores import uses
from datastores.changes import NAME, check_description, require_contributor
from datastores.datasets.tags import merge_tags
from datastores.models import Dataset, DatasetVersion, Datastore
from datastores.places import check_path
from datastores.states import DatastoreKind, ListingState
from trainhub_launch.errors import SpecError
from workspaces import audit
from workspaces.access import Principal
from workspaces.models import Workspace
from workspaces.task_names import TaskName

MAX_DATASETS = 1000
MAX_VERSIONS = 1000


def create(
    principal: Principal,
    name: str,
    datastore: str,
    path: str,
    description: str = "",
    *,
    tags: Mapping[str, str] | None = None,
) -> DatasetVersion:
    """Makes a dataset and has its files listed, or lets the person upload them. Returns its first version.
    Raises SpecError, and PermissionDenied."""
    require_contributor(principal)
    if not NAME.match(name):
        raise SpecError(
            "name",
            "must have 1 to 100 letters, digits, '.', '_' and '-', and begin with a letter or digit, such as "
            "birds",
        )
    path, description, tags = check_path(path), check_description(description), merge_tags({}, tags or {})
    with transaction.atomic():
        # The lock makes two requests with the same name come one after the other.
        workspace = Workspace.objects.select_for_update().get(pk=principal.workspace.pk)
        place = _datastore(workspace, datastore)
        if place.kind != DatastoreKind.HUB:
            _require_listable(place)
        elif path:
            raise SpecError(
                "path", f"{place.name} has no folders of its own; leave it out, and upload the files"
            )
        existing = Dataset.objects.filter(workspace=workspace)
        if existing.filter(name=name).exists():
            raise SpecError(
                "name",
                f"there is a dataset {name} already; refresh it for a new version, or choose another name",
            )
        if existing.count() >= MAX_DATASETS:
            raise SpecError("name", f"a workspace has at most {MAX_DATASETS} datasets; delete one first")
        dataset = Dataset.objects.create(
            workspace=workspace,
            name=name,
            datastore=place,
            path=path,
            description=description,
            tags=tags,
            created_by=principal.user,
        )
        audit.record(
            principal.user, "dataset.create", name, workspace, datastore=place.name, path=path or "all of it"
        )
        return new_version(principal, dataset)


def refresh(principal: Principal, dataset: Dataset) -> DatasetVersion:
    """Has the files listed anew, as the next version; the one that is being listed already if there is
    one. Raises SpecError, and PermissionDenied."""
    require_contributor(principal)
    with transaction.atomic():
        Dataset.objects.select_for_update().get(pk=dataset.pk)
        waiting = dataset.versions.filter(state=ListingState.LISTING).first()
        if waiting is not None:
            return waiting
        _require_listable(dataset.datastore)
        return new_version(principal, dataset)


def describe(
    principal: Principal,
    dataset: Dataset,
    description: str | None = None,
    tags: Mapping[str, str | None] | None = None,
) -> None:
    """Sets the description, and tags; what is None stays, and a tag with the value None is removed. Raises
    SpecError, and PermissionDenied."""
    require_contributor(principal)
    if description is None and not tags:
        return
    with transaction.atomic():
        # Of two changes at once none is lost.
        current = Dataset.objects.select_for_update().get(pk=dataset.pk)
        if description is not None:
            current.description = check_description(description)
        if tags:
            current.tags = merge_tags(current.tags, tags)
        current.save(update_fields=["description", "tags"])
        audit.record(principal.user, "dataset.describe", dataset.name, principal.workspace)
    dataset.description, dataset.tags = current.description, current.tags


def delete(principal: Principal, dataset: Dataset) -> None:
    """Deletes the dataset with its lists. The files stay where they are; those on the hub are removed by the
    next collection of files that nothing names. Raises SpecError while runs name
    it, and PermissionDenied."""
    require_contributor(principal)
    with transaction.atomic():
        Workspace.objects.select_for_update().get(pk=principal.workspace.pk)
        if use := uses.first_dataset_use(dataset):
            raise SpecError(
                "name",
                f"{dataset.name} is what {use} learned from; it stays as long as that, also in the "
                "list of deleted runs",
            )
        audit.record(principal.user, "dataset.delete", dataset.name, principal.workspace)
        dataset.delete()


def new_version(principal: Principal, dataset: Dataset) -> DatasetVersion:
    """Returns the next version, whose files are to be listed or uploaded. The caller has locked the dataset.
    Raises SpecError."""
    last = dataset.versions.aggregate(last=Max("number"))["last"] or 0
    if last >= MAX_VERSIONS:
        raise SpecError(
            "name", f"{dataset.name} has {MAX_VERSIONS} versions, which is the most; make another dataset"
        )
    version = DatasetVersion(dataset=dataset, number=last + 1, created_by=principal.user)
    if dataset.datastore.kind == DatastoreKind.HUB:
        version.state = ListingState.UPLOADING
        version.begun_at = version.seen_at = timezone.now()
        version.save()
        return version
    version.save()
    if last:
        audit.record(principal.user, "dataset.refresh", str(version), principal.workspace)
    is_by_node = dataset.datastore.is_listed_by_node
    send_task_soon(TaskName.ADVANCE_LISTING if is_by_node else TaskName.LIST_VERSION, version.pk)
    return version


def _datastore(workspace: Workspace, name: str) -> Datastore:
    """Returns the datastore of this name. Raises SpecError if there is none."""
    datastore = Datastore.objects.filter(workspace=workspace, name=name).first()
    if datastore is None:
        listed = Datastore.objects.filter(workspace=workspace).values_list("name", flat=True)
        there = ", ".join(listed[:20]) or "none yet; add one first"
        raise SpecError("datastore", f"there is no datastore {name!r:.110}; there are: {there}")
    return datastore


def _require_listable(datastore: Datastore) -> None:
    """Raises SpecError if the datastore cannot be listed."""
    if refusal := listing_refusal(datastore):
        raise SpecError("datastore", refusal)


def upload_refusal(datastore: Datastore) -> str:
    """Returns why files cannot be uploaded into datasets of the datastore, "" if they can."""
    if datastore.kind == DatastoreKind.HUB:
        return ""
    return f"the files lie in the datastore {datastore.name}: write new ones there, and refresh the dataset"


def listing_refusal(datastore: Datastore) -> str:
    """Returns why the files of the datastore cannot be listed, "" if they can."""
    if datastore.kind == DatastoreKind.HUB:
        return f"{datastore.name} has files that are uploaded: upload the folder again for the next version"
    if datastore.kind == DatastoreKind.HTTP:
        return f"{datastore.name} is a web server, which cannot be asked which files it has"
    return ""

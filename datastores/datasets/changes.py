"""Makes, refreshes, describes and deletes datasets."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Max

from clusters.task_messages import send_task_soon
from datastores import uses
from datastores.changes import NAME, check_description, require_contributor
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
    principal: Principal, name: str, datastore: str, path: str, description: str = ""
) -> DatasetVersion:
    """Makes a dataset and has its files listed. Returns its first version. Raises SpecError, and
    PermissionDenied."""
    require_contributor(principal)
    if not NAME.match(name):
        raise SpecError(
            "name",
            "must have 1 to 100 letters, digits, '.', '_' and '-', and begin with a letter or digit, such as "
            "birds",
        )
    path, description = check_path(path), check_description(description)
    with transaction.atomic():
        # The lock makes two requests with the same name come one after the other.
        workspace = Workspace.objects.select_for_update().get(pk=principal.workspace.pk)
        place = _listable(workspace, datastore)
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
            created_by=principal.user,
        )
        audit.record(
            principal.user, "dataset.create", name, workspace, datastore=place.name, path=path or "all of it"
        )
        return _new_version(principal, dataset)


def refresh(principal: Principal, dataset: Dataset) -> DatasetVersion:
    """Has the files listed anew, as the next version; the one that is being listed already if there is
    one. Raises SpecError, and PermissionDenied."""
    require_contributor(principal)
    with transaction.atomic():
        Dataset.objects.select_for_update().get(pk=dataset.pk)
        waiting = dataset.versions.filter(state=ListingState.LISTING).first()
        if waiting is not None:
            return waiting
        _listable(principal.workspace, dataset.datastore.name)
        return _new_version(principal, dataset)


def describe(principal: Principal, dataset: Dataset, description: str) -> None:
    """Raises SpecError, and PermissionDenied."""
    require_contributor(principal)
    dataset.description = check_description(description)
    dataset.save(update_fields=["description"])
    audit.record(principal.user, "dataset.describe", dataset.name, principal.workspace)


def delete(principal: Principal, dataset: Dataset) -> None:
    """Deletes the dataset with its lists; the files stay where they are. Raises SpecError while runs name
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


def _new_version(principal: Principal, dataset: Dataset) -> DatasetVersion:
    last = dataset.versions.aggregate(last=Max("number"))["last"] or 0
    if last >= MAX_VERSIONS:
        raise SpecError(
            "name", f"{dataset.name} has {MAX_VERSIONS} versions, which is the most; make another dataset"
        )
    version = DatasetVersion.objects.create(dataset=dataset, number=last + 1, created_by=principal.user)
    if last:
        audit.record(principal.user, "dataset.refresh", str(version), principal.workspace)
    is_by_node = dataset.datastore.is_listed_by_node
    send_task_soon(TaskName.ADVANCE_LISTING if is_by_node else TaskName.LIST_VERSION, version.pk)
    return version


def _listable(workspace: Workspace, name: str) -> Datastore:
    """Returns the datastore of this name. Raises SpecError if there is none, or it cannot be listed."""
    datastore = Datastore.objects.filter(workspace=workspace, name=name).first()
    if datastore is None:
        listed = Datastore.objects.filter(workspace=workspace).values_list("name", flat=True)
        there = ", ".join(listed[:20]) or "none yet; add one first"
        raise SpecError("datastore", f"there is no datastore {name!r:.110}; there are: {there}")
    if refusal := listing_refusal(datastore):
        raise SpecError("datastore", refusal)
    return datastore


def listing_refusal(datastore: Datastore) -> str:
    """Returns why the files of the datastore cannot be listed, "" if they can."""
    if datastore.kind == DatastoreKind.HTTP:
        return f"{datastore.name} is a web server, which cannot be asked which files it has"
    return ""

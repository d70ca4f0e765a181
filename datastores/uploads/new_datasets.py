"""New datasets of files that are uploaded."""

from __future__ import annotations

from django.db import transaction

from datastores import changes as datastore_changes
from datastores.datasets import changes
from datastores.models import DatasetVersion, Datastore
from datastores.states import DatastoreKind
from workspaces.access import Principal
from workspaces.models import Workspace

DATASTORE = "uploads"


def hub_datastores(workspace: Workspace) -> list[str]:
    """Returns the names of the datastores whose files are uploaded."""
    rows = Datastore.objects.filter(workspace=workspace, kind=DatastoreKind.HUB)
    return list(rows.values_list("name", flat=True))


def create(principal: Principal, name: str, description: str, datastore: str = "") -> DatasetVersion:
    """Makes a dataset whose files are uploaded next. Without `datastore` in the workspace's first one of that
    kind, which is made if there is none. Raises SpecError, and PermissionDenied."""
    with transaction.atomic():
        place = datastore or next(iter(hub_datastores(principal.workspace)), "")
        place = (
            place
            or datastore_changes.create(
                principal, _free_name(principal.workspace), DatastoreKind.HUB, {}
            ).name
        )
        return changes.create(principal, name, place, "", description)


def _free_name(workspace: Workspace) -> str:
    names = set(Datastore.objects.filter(workspace=workspace).values_list("name", flat=True))
    numbered = (f"{DATASTORE}-{number}" for number in range(2, len(names) + 3))
    return next(name for name in (DATASTORE, *numbered) if name not in names)

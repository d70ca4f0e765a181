"""Makes, changes and deletes datastores."""

from __future__ import annotations

import re

from django.core.exceptions import PermissionDenied
from django.db import transaction

from datastores import uses
from datastores.folder_path import check_folder_path
from datastores.models import Datastore
from datastores.states import DatastoreKind
from trainhub_launch.errors import SpecError
from workspaces import audit
from workspaces.access import Principal, lacking
from workspaces.models import Workspace
from workspaces.states import Role

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
MAX_DATASTORES = 200
MAX_DESCRIPTION = 500


def create(principal: Principal, name: str, kind: str, path: str, description: str = "") -> Datastore:
    """Makes a datastore. Raises SpecError, and PermissionDenied."""
    _require_contributor(principal)
    if not NAME.match(name):
        raise SpecError(
            "name",
            "must have 1 to 100 letters, digits, '.', '_' and '-', and begin with a letter or digit, such as "
            "images",
        )
    if kind not in list(DatastoreKind):
        raise SpecError("kind", f"{kind!r:.50} is no kind of datastore; use {' or '.join(DatastoreKind)}")
    path, description = check_folder_path(path), _check_description(description)
    with transaction.atomic():
        # The lock makes two requests with the same name come one after the other.
        Workspace.objects.select_for_update().get(pk=principal.workspace.pk)
        existing = Datastore.objects.filter(workspace=principal.workspace)
        if existing.filter(name=name).exists():
            raise SpecError("name", f"there is a datastore {name} already; choose another name")
        if existing.count() >= MAX_DATASTORES:
            raise SpecError("name", f"a workspace has at most {MAX_DATASTORES} datastores; delete one first")
        datastore = Datastore.objects.create(
            workspace=principal.workspace,
            name=name,
            kind=kind,
            path=path,
            description=description,
            created_by=principal.user,
        )
        audit.record(principal.user, "datastore.create", name, principal.workspace, kind=kind, path=path)
    return datastore


def change(
    principal: Principal, datastore: Datastore, *, path: str | None = None, description: str | None = None
) -> None:
    """Changes what is not None. Attempts that have begun keep the earlier path. Raises SpecError, and
    PermissionDenied."""
    _require_contributor(principal)
    # Only these are written: somebody else may be changing the other one.
    changed = []
    if path is not None:
        datastore.path = check_folder_path(path)
        changed.append("path")
    if description is not None:
        datastore.description = _check_description(description)
        changed.append("description")
    if not changed:
        return
    with transaction.atomic():
        datastore.save(update_fields=changed)
        audit.record(
            principal.user, "datastore.change", datastore.name, principal.workspace, path=datastore.path
        )


def delete(principal: Principal, datastore: Datastore) -> None:
    """Deletes the datastore; the data stays where it is. Raises SpecError while runs use it, and
    PermissionDenied."""
    _require_contributor(principal)
    with transaction.atomic():
        Workspace.objects.select_for_update().get(pk=principal.workspace.pk)
        if use := uses.first_use(datastore):
            raise SpecError("name", f"{datastore.name} is needed by {use}; delete it when that is over")
        audit.record(principal.user, "datastore.delete", datastore.name, principal.workspace)
        datastore.delete()


def _require_contributor(principal: Principal) -> None:
    if not principal.may(Role.CONTRIBUTOR):
        raise PermissionDenied(lacking(principal, Role.CONTRIBUTOR))


def _check_description(text: str) -> str:
    text = text.strip()
    if len(text) > MAX_DESCRIPTION or "\0" in text:
        raise SpecError("description", f"must have at most {MAX_DESCRIPTION} characters and no NUL")
    return text

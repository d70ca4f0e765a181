"""Makes, changes and deletes datastores."""

from __future__ import annotations

import re
from collections.abc import Mapping

from django.core.exceptions import PermissionDenied
from django.db import transaction

from datastores import uses
from datastores.models import Datastore
from datastores.places import Place, check_place, fields_of
from datastores.states import DatastoreKind
from trainhub_launch.errors import SpecError
from workspaces import audit
from workspaces.access import Principal, lacking
from workspaces.models import Workspace
from workspaces.secrets import store
from workspaces.states import Role

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
MAX_DATASTORES = 200
MAX_DESCRIPTION = 500


def create(
    principal: Principal, name: str, kind: str, fields: Mapping[str, str], description: str = ""
) -> Datastore:
    """Makes a datastore. `fields`: those of its kind (see datastores.places). Raises SpecError, and
    PermissionDenied."""
    require_contributor(principal)
    if not NAME.match(name):
        raise SpecError(
            "name",
            "must have 1 to 100 letters, digits, '.', '_' and '-', and begin with a letter or digit, such as "
            "images",
        )
    if kind not in list(DatastoreKind):
        raise SpecError("kind", f"{kind!r:.50} is no kind of datastore; use {', '.join(DatastoreKind)}")
    place, description = check_place(kind, fields), check_description(description)
    _check_secret(principal, place)
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
            **_columns(place),
            description=description,
            created_by=principal.user,
        )
        audit.record(
            principal.user, "datastore.create", name, principal.workspace, kind=kind, path=datastore.place
        )
    return datastore


def change(
    principal: Principal,
    datastore: Datastore,
    fields: Mapping[str, str] | None = None,
    description: str | None = None,
) -> None:
    """Changes the fields that are given. Attempts that have begun keep what they were. Raises SpecError, and
    PermissionDenied."""
    require_contributor(principal)
    checked = None if description is None else check_description(description)
    if not fields and checked is None:
        return
    with transaction.atomic():
        # What is not given stays as it is now, also if somebody else has just changed it.
        current = Datastore.objects.select_for_update().get(pk=datastore.pk)
        if fields:
            place = check_place(current.kind, {**current_fields(current), **fields})
            _check_secret(principal, place)
            for name, value in _columns(place).items():
                setattr(current, name, value)
        if checked is not None:
            current.description = checked
        current.save()
        audit.record(
            principal.user, "datastore.change", current.name, principal.workspace, path=current.place
        )
    datastore.refresh_from_db()


def current_fields(datastore: Datastore) -> dict[str, str]:
    """Returns the fields of its kind, as `create` takes them."""
    values = {
        **datastore.settings,
        "path": datastore.path,
        "sign_in": datastore.sign_in,
        "secret": datastore.secret,
    }
    return {name: values.get(name, "") for name in fields_of(datastore.kind)}


def delete(principal: Principal, datastore: Datastore) -> None:
    """Deletes the datastore; the data stays where it is. Raises SpecError while runs use it, and
    PermissionDenied."""
    require_contributor(principal)
    with transaction.atomic():
        Workspace.objects.select_for_update().get(pk=principal.workspace.pk)
        if dataset := datastore.datasets.first():
            raise SpecError(
                "name", f"{datastore.name} has the files of the dataset {dataset}; delete that first"
            )
        if use := uses.first_use(datastore):
            raise SpecError("name", f"{datastore.name} is needed by {use}; delete it when that is over")
        audit.record(principal.user, "datastore.delete", datastore.name, principal.workspace)
        datastore.delete()


def _columns(place: Place) -> dict[str, object]:
    return {
        "path": place.path,
        "sign_in": place.sign_in,
        "secret": place.secret,
        "settings": dict(place.settings),
    }


def _check_secret(principal: Principal, place: Place) -> None:
    """Raises SpecError unless the workspace has the secret: never a person's own, because everybody's runs
    use the datastore."""
    if place.secret and not store.resolve(principal.workspace, None, [place.secret]):
        raise SpecError(
            "secret",
            f"{principal.workspace} has no secret {place.secret!r:.80} for all its members; an owner stores "
            "it at /settings/secrets/",
        )


def require_contributor(principal: Principal) -> None:
    if not principal.may(Role.CONTRIBUTOR):
        raise PermissionDenied(lacking(principal, Role.CONTRIBUTOR))


def check_description(text: str) -> str:
    text = text.strip()
    if len(text) > MAX_DESCRIPTION or "\0" in text:
        raise SpecError("description", f"must have at most {MAX_DESCRIPTION} characters and no NUL")
    return text

"""Where the outputs of attempts go when their spec names a datastore."""

from __future__ import annotations

from django.db.models import QuerySet

from datastores.models import Datastore
from datastores.run_inputs import missing_datastore
from jobs.models import Attempt, AttemptNode, OutputFolder
from trainhub_launch.data.outputs import StoreFolder
from trainhub_launch.data.stores import OUTPUT_KINDS, SignIn, folder_store
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import RunSpec
from workspaces.database.compiled_queries import compiled
from workspaces.models import Workspace


def find_output_store(spec: RunSpec, workspace: Workspace) -> Datastore | None:
    """Returns the datastore into which the outputs go; None = they go to the hub. Raises SpecError. One
    query, or none."""
    if spec.outputs is None:
        return None
    return find_writable_store(spec.outputs.datastore, "outputs.datastore", workspace)


def find_writable_store(name: str, field: str, workspace: Workspace) -> Datastore:
    """Returns the datastore of this name, into which runs can write. Raises SpecError for the `field`."""
    datastore = Datastore.objects.filter(workspace=workspace, name=name).first()
    if datastore is None:
        raise SpecError(field, missing_datastore(name, workspace))
    if datastore.kind not in OUTPUT_KINDS:
        raise SpecError(
            field,
            f"{datastore} is of the kind {datastore.kind}, but only those of the kinds "
            f"{', '.join(OUTPUT_KINDS)} take outputs and checkpoints; name one of these, or leave this "
            "out, so that the hub keeps them",
        )
    if not datastore.is_folder and datastore.sign_in == SignIn.NONE:
        raise SpecError(
            field,
            f"{datastore} has no credentials, without which nothing can be written; give it a secret that "
            "may write, or name another datastore",
        )
    return datastore


def list_output_stores(workspace: Workspace) -> list[str]:
    """Returns the names of the datastores into which runs can write."""
    rows = Datastore.objects.filter(workspace=workspace, kind__in=OUTPUT_KINDS)
    return [row.name for row in rows if row.is_folder or row.sign_in != SignIn.NONE]


def add_output_folder(attempt: Attempt, datastore: Datastore | None, spec: RunSpec) -> None:
    """Has the outputs of a new attempt go to a folder of its own in the datastore, if there is one."""
    if datastore is None or spec.outputs is None:
        return
    # No other run or attempt ever writes there, so that nothing is replaced.
    below = f"{attempt.run_id}/attempt_{attempt.number}"
    path = datastore.path_of("/".join(filter(None, [spec.outputs.path, below])))
    OutputFolder.objects.create(
        run=attempt.run,
        attempt=attempt.number,
        datastore=datastore,
        path=path,
        place=datastore.place_of(path),
    )


def output_order(part: AttemptNode) -> StoreFolder | None:
    """Returns where a node writes the outputs of its part; None = to the hub."""
    folder = find_output_folder(part)
    if folder is None or folder.datastore is None:
        return None
    return folder_in(folder.datastore, f"{folder.path}/{key_prefix(part)}".rstrip("/"))


def folder_in(datastore: Datastore, path: str) -> StoreFolder:
    """Returns a folder of the datastore as nodes use it. `path`: the whole path in its store."""
    store = folder_store(datastore.path) if datastore.is_folder else datastore.store
    return StoreFolder(store, path, datastore.secret)


def find_output_folder(part: AttemptNode) -> OutputFolder | None:
    return next(iter(_folders(part.attempt.run_id, part.attempt.number)), None)


@compiled
def _folders(run_id: str, attempt: int) -> QuerySet[OutputFolder]:
    return OutputFolder.objects.select_related("datastore").filter(run_id=run_id, attempt=attempt)


def key_prefix(part: AttemptNode) -> str:
    """Returns what the keys of the node's files begin with: with several nodes each has a folder of its
    own."""
    return f"node_{part.node_rank}/" if len(part.attempt.placement) > 1 else ""

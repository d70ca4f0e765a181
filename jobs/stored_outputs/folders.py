"""Where the outputs of attempts go when their spec names a datastore."""

from __future__ import annotations

from datastores.models import Datastore
from datastores.run_inputs import missing_datastore
from jobs.models import Attempt, AttemptNode, OutputFolder
from trainhub_launch.data.outputs import OutputOrder
from trainhub_launch.data.stores import OUTPUT_KINDS, SignIn, folder_store
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import RunSpec
from workspaces.models import Workspace


def find_output_store(spec: RunSpec, workspace: Workspace) -> Datastore | None:
    """Returns the datastore into which the outputs go; None = they go to the hub. Raises SpecError. One
    query, or none."""
    if spec.outputs is None:
        return None
    name = spec.outputs.datastore
    datastore = Datastore.objects.filter(workspace=workspace, name=name).first()
    if datastore is None:
        raise SpecError("outputs.datastore", missing_datastore(name, workspace))
    if datastore.kind not in OUTPUT_KINDS:
        raise SpecError(
            "outputs.datastore",
            f"{datastore} is of the kind {datastore.kind}, into which runs cannot write; name one of the "
            f"kinds {', '.join(OUTPUT_KINDS)}, or leave outputs out, so that the hub keeps them",
        )
    if not datastore.is_folder and datastore.sign_in == SignIn.NONE:
        raise SpecError(
            "outputs.datastore",
            f"{datastore} has no credentials, without which nothing can be written; give it a secret that "
            "may write, or name another datastore",
        )
    return datastore


def list_output_stores(workspace: Workspace) -> list[str]:
    """Returns the names of the datastores into which runs can write."""
    rows = Datastore.objects.filter(workspace=workspace, kind__in=OUTPUT_KINDS)
    return [row.name for row in rows if row.is_folder or row.sign_in != SignIn.NONE]


def add_output_folder(attempt: Attempt, spec: RunSpec) -> None:
    """Decides where the outputs of a new attempt go. Raises SpecError."""
    datastore = find_output_store(spec, attempt.run.workspace)
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


def output_order(part: AttemptNode) -> OutputOrder | None:
    """Returns where a node writes the outputs of its part; None = to the hub."""
    folder = find_output_folder(part)
    if folder is None or folder.datastore is None:
        return None
    datastore = folder.datastore
    store = folder_store(datastore.path) if datastore.is_folder else datastore.store
    return OutputOrder(store, f"{folder.path}/{key_prefix(part)}".rstrip("/"), datastore.secret)


def find_output_folder(part: AttemptNode) -> OutputFolder | None:
    folders = OutputFolder.objects.select_related("datastore")
    return folders.filter(run_id=part.attempt.run_id, attempt=part.attempt.number).first()


def key_prefix(part: AttemptNode) -> str:
    """Returns what the keys of the node's files begin with: with several nodes each has a folder of its
    own."""
    return f"node_{part.node_rank}/" if len(part.attempt.placement) > 1 else ""

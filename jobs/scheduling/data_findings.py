"""What is wrong or doubtful about the data that a run reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, timedelta

from django.utils import timezone

from datastores.run_inputs import InputPlaces, look_up
from jobs.checkpoints.stores import find_checkpoint_store
from jobs.stored_outputs.folders import find_output_store
from trainhub_launch.data.store_signing import find_signing_problem
from trainhub_launch.data.stores import AZURE_BLOB, SignIn, Store, may_delete, may_write, sas_end
from trainhub_launch.errors import SpecError
from trainhub_launch.findings import Finding
from trainhub_launch.machine import OWN_ACCOUNTS
from trainhub_launch.scheduler.capacity import FreeNode
from trainhub_launch.scheduler.sizes import bytes_text
from trainhub_launch.spec import RunSpec
from workspaces.models import Workspace
from workspaces.secrets import store
from workspaces.secrets.errors import SecretsUnavailable

# A run may wait and prepare for long.
SOON = timedelta(days=1)
READ_RIGHTS, WRITE_RIGHTS, SIGN_RIGHTS = "read and list", "read, list, create and write", "sign addresses"
REMOVE_RIGHTS = "read, list, create, write and delete"
# From here on, and with less than so many bytes on average, files take far longer than their bytes.
MANY_FILES, SMALL_BYTES = 100_000, 1_000_000
# From here on each node gets a quarter of what a file server sends, or less. The network of a usual one is as
# fast as that of a node, or twice as fast.
MANY_NODES = 4


def data_findings(spec: RunSpec, workspace: Workspace, nodes: Sequence[FreeNode]) -> Iterator[Finding]:
    """`nodes`: those that the run would get."""
    places = look_up(spec, workspace)
    for problem in places.problems:
        yield Finding("error", problem.field, problem.message)
    for name, download in places.downloads.items():
        yield from _secret(f"inputs.{name}", download.store, download.secret, workspace, READ_RIGHTS)
    for name, item in places.references.items():
        yield from _secret(f"inputs.{name}", item.store, item.secret, workspace, SIGN_RIGHTS)
    yield from _written(spec, workspace)
    yield from _small_files(places)
    yield from _one_server(places, spec.node_count)
    paths = {**places.paths, **{name: str(mount) for name, mount in places.mounts.items()}}
    apart = [node.name for node in nodes if OWN_ACCOUNTS in node.capabilities]
    if paths and apart:
        whose = f"{apart[0]} and {len(apart) - 1} more" if len(apart) > 1 else apart[0]
        yield Finding(
            "hint",
            "inputs",
            f"runs on {whose} have accounts of their own, so everybody there must be able to read "
            f"{', '.join(sorted(set(paths.values())))}",
        )


def _written(spec: RunSpec, workspace: Workspace) -> Iterator[Finding]:
    """About the datastores into which outputs and checkpoints go."""
    for find, field, rights in (
        (find_output_store, "outputs.datastore", WRITE_RIGHTS),
        (find_checkpoint_store, "checkpoint.datastore", REMOVE_RIGHTS),
    ):
        try:
            datastore = find(spec, workspace)
        except SpecError as error:
            yield Finding("error", error.field, error.message)
            continue
        if datastore is not None and not datastore.is_folder:
            yield from _secret(field, datastore.store, datastore.secret, workspace, rights)


def _secret(field: str, used: Store, name: str, workspace: Workspace, rights: str) -> Iterator[Finding]:
    """`rights`: what the secret must be good for; of a signature, for a sentence."""
    if used.sign_in != SignIn.SECRET:
        return
    secret = store.resolve(workspace, None, [name]).get(name)
    if secret is None:
        yield Finding(
            "error",
            field,
            f"its datastore is opened with the secret {name}, which the workspace does not have any more; an "
            "owner stores it at /settings/secrets/",
        )
        return
    try:
        value = store.value_of(secret)
    except SecretsUnavailable as error:
        yield Finding("error", field, f"the secret {name} cannot be read: {error.message}")
        return
    if rights == SIGN_RIGHTS and (problem := find_signing_problem(used, value)):
        yield Finding("error", f"{field}.mode", f"its datastore {problem}")
    elif used.kind == AZURE_BLOB:
        yield from _about_signature(field, name, value, rights)


def _small_files(places: InputPlaces) -> Iterator[Finding]:
    for name, version in places.versions.items():
        if version.files >= MANY_FILES and version.bytes < SMALL_BYTES * version.files:
            yield Finding(
                "hint",
                f"inputs.{name}",
                f"{version} has {version.files:,} files with {bytes_text(version.bytes // version.files)} on "
                "average: downloading and reading them takes far longer than the same bytes in archives of "
                "some 100 MB; /docs/data/#many-small-files says how to pack them",
            )


def _one_server(places: InputPlaces, node_count: int) -> Iterator[Finding]:
    if node_count < MANY_NODES:
        return
    everybody = f"all {node_count} nodes read"
    phrases = {name: f"{everybody} {mount} from one file server" for name, mount in places.mounts.items()}
    # The hub does not know what a folder of the nodes is.
    phrases |= {
        name: f"if {path} is a share of one file server, {everybody} it from there"
        for name, path in places.paths.items()
    }
    for name, phrase in phrases.items():
        yield Finding(
            "hint",
            f"inputs.{name}",
            f"{phrase} at the same time, so each gets a part of what that can send. A dataset that nodes "
            "download leaves its store once, and they take it from each other: /docs/data/#between-nodes",
        )


def _about_signature(field: str, name: str, value: str, rights: str) -> Iterator[Finding]:
    """A shared access signature says when it ends, and what it permits."""
    remedy = f"make a new one with the rights to {rights}, and store it as the secret {name}"
    if rights in (WRITE_RIGHTS, REMOVE_RIGHTS) and not may_write(value):
        yield Finding("error", field, f"the shared access signature in {name} may not write; {remedy}")
    elif rights == REMOVE_RIGHTS and not may_delete(value):
        yield Finding(
            "warning",
            field,
            f"the shared access signature in {name} may not delete, so checkpoints that are not kept any "
            f"more stay there; {remedy}",
        )
    moment = sas_end(value)
    if moment is None:
        return
    now, end = timezone.now(), f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    if moment <= now:
        yield Finding("error", field, f"the shared access signature in {name} ended on {end}; {remedy}")
    elif moment - now < SOON:
        yield Finding("hint", field, f"the shared access signature in {name} ends on {end}; {remedy}")

"""What is wrong or doubtful about the data that a run reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from django.utils import timezone

from datastores.run_inputs import InputPlaces, look_up
from trainhub_launch.data.store_signing import find_signing_problem
from trainhub_launch.data.stores import AZURE_BLOB, SignIn, sas_end
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
# From here on, and with less than so many bytes on average, files take far longer than their bytes.
MANY_FILES, SMALL_BYTES = 100_000, 1_000_000


def data_findings(spec: RunSpec, workspace: Workspace, nodes: Sequence[FreeNode]) -> Iterator[Finding]:
    """`nodes`: those that the run would get."""
    places = look_up(spec, workspace)
    for problem in places.problems:
        yield Finding("error", problem.field, problem.message)
    yield from _secrets(places, workspace)
    yield from _small_files(places)
    paths = places.paths
    apart = [node.name for node in nodes if OWN_ACCOUNTS in node.capabilities]
    if paths and apart:
        whose = f"{apart[0]} and {len(apart) - 1} more" if len(apart) > 1 else apart[0]
        yield Finding(
            "hint",
            "inputs",
            f"runs on {whose} have accounts of their own, so everybody there must be able to read "
            f"{', '.join(sorted(set(paths.values())))}",
        )


def _secrets(places: InputPlaces, workspace: Workspace) -> Iterator[Finding]:
    for name, download in (*places.downloads.items(), *places.references.items()):
        if download.store.sign_in != SignIn.SECRET:
            continue
        field = f"inputs.{name}"
        secret = store.resolve(workspace, None, [download.secret]).get(download.secret)
        if secret is None:
            yield Finding(
                "error",
                field,
                f"its datastore is read with the secret {download.secret}, which the workspace does not have "
                "any more; an owner stores it at /settings/secrets/",
            )
            continue
        try:
            value = store.value_of(secret)
        except SecretsUnavailable as error:
            yield Finding("error", field, f"the secret {download.secret} cannot be read: {error.message}")
            continue
        if name in places.references and (problem := find_signing_problem(download.store, value)):
            yield Finding("error", f"{field}.mode", f"its datastore {problem}")
        elif download.store.kind == AZURE_BLOB:
            yield from _about_end(field, download.secret, sas_end(value))


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


def _about_end(field: str, secret: str, moment: datetime | None) -> Iterator[Finding]:
    """A shared access signature says when it ends."""
    if moment is None:
        return
    now, end = timezone.now(), f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    remedy = f"make a new one with the rights to read and list, and store it as the secret {secret}"
    if moment <= now:
        yield Finding("error", field, f"the shared access signature in {secret} ended on {end}; {remedy}")
    elif moment - now < SOON:
        yield Finding("hint", field, f"the shared access signature in {secret} ends on {end}; {remedy}")

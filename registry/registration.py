"""Registers files as a version of a model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from clusters.task_messages import send_task_soon
from jobs.models import Artifact, Run, StoredOutput
from jobs.outputs import all_of
from jobs.retention.removals import removal_sentence
from jobs.states import FINAL, DataKind
from registry.certificates import issuance
from registry.errors import RegistryError
from registry.models import ModelFile, ModelVersion, ReferencedFile, RegisteredModel
from registry.verifying.trainhub_verify import CERTIFICATE, SIGNATURE
from tracking.models import LoggedModel, LoggedModelFile
from workspaces import audit
from workspaces.models import User, Workspace
from workspaces.stored_files import blobs
from workspaces.task_names import TaskName

# A name is one segment of addresses such as models:/NAME/3, so it has no slash, and no space at either end.
MODEL_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._-]{0,254}[A-Za-z0-9._-])?\Z")
OUTPUTS = "outputs/"
PENDING = "LOGGED_MODEL_PENDING"
SourceFile = Artifact | StoredOutput | ModelFile | ReferencedFile | LoggedModelFile
RUN, LOGGED_MODEL, UPLOAD, EXPORT, VERSION = "run", "logged_model", "upload", "export", "version"


@dataclass(frozen=True)
class StoreReference:
    """Where a file lies that is not on the hub: as in ReferencedFile."""

    datastore_id: int | None
    store_path: str
    place: str


@dataclass(frozen=True)
class File:
    """A file of a version. `path`: inside the version. `sha256`: the blob with its bytes, unless it has a
    `reference`."""

    path: str
    size_bytes: int
    sha256: str
    reference: StoreReference | None = None


@dataclass(frozen=True)
class Origin:
    """The files of a new version, and where they come from. `kind`: run, logged_model, upload, export or
    version. `source`: the address that a client gave. `path`: what was chosen below the run's outputs."""

    kind: str
    files: tuple[File, ...]
    source: str = ""
    path: str = ""
    run: Run | None = None
    logged_model: LoggedModel | None = None
    parent: ModelVersion | None = None

    @property
    def is_pending(self) -> bool:
        """Whether this is a logged model without files that is still being uploaded."""
        model = self.logged_model
        return self.kind == LOGGED_MODEL and not self.files and model is not None and model.status == PENDING


@dataclass(frozen=True)
class Words:
    """Texts that a person gives to a version."""

    description: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


def register(
    workspace: Workspace, name: str, run: Run, path: str, user: User, *, description: str = ""
) -> ModelVersion:
    """Registers a file or folder of the run's outputs as the next version of the model `name`, and creates
    the model if it is new.

    Raises RegistryError. Concurrent calls get different numbers.
    """
    name = check_name(name)
    if run.workspace_id != workspace.pk:
        raise RegistryError("run", "is not a run of this workspace; choose one of its runs")
    return add_version(workspace, name, outputs(run, path), user, Words(description.strip()))


def add_version(
    workspace: Workspace, name: str, origin: Origin, user: User | None, words: Words | None = None
) -> ModelVersion:
    """Adds the next version with its certificate to the model `name`, and creates the model if it is new.

    A logged model that is still being uploaded may have no files yet; `registry.mlflow.deferred_files` adds
    them and the certificate later.

    Raises RegistryError, and then stores nothing. Concurrent calls get different numbers.
    """
    words = words or Words()
    if not origin.is_pending:
        _check_files(origin.files)
    version = ModelVersion(
        kind=origin.kind,
        source=origin.source,
        source_path=origin.path,
        run=origin.run,
        logged_model=origin.logged_model,
        parent=origin.parent,
        description=words.description,
        tags=dict(words.tags),
        created_by=user,
    )
    # Before the transaction: this hashes the files of the run's source, and SQLite admits one writer at a
    # time.
    origin_facts = issuance.origin_of(version)
    with transaction.atomic():
        version.model, version.number = _next(workspace, check_name(name))
        version.save()
        if files := _create_files(version, origin.files):
            issuance.issue(version, files, origin_facts)
        actor, run = user or "a job whose owner is gone", origin.run.pk if origin.run else ""
        audit.record(
            actor,
            "model.registered",
            f"{version.model.name} version {version.number}",
            workspace,
            run=run,
            path=origin.path,
        )
        # Sent once the transaction has committed; the periodic task scan_missed does the work of a lost one.
        send_task_soon(TaskName.SCAN_VERSION, version.pk)
    return version


def check_name(name: str) -> str:
    name = name.strip()
    if not name:
        raise RegistryError("name", "is required: enter a name for the model")
    if not MODEL_NAME.match(name):
        raise RegistryError(
            "name", "use up to 256 letters, digits, space, '.', '_' and '-', starting with a letter or digit"
        )
    return name


def choices_of(artifacts: Iterable[Artifact | StoredOutput]) -> list[str]:
    """Returns the paths of all files, and of all folders with a final slash, sorted."""
    paths = [PurePosixPath(artifact.path) for artifact in artifacts]
    folders = {f"{parent}/" for path in paths for parent in path.parents if parent.name}
    return sorted({*folders, *map(str, paths)})


def outputs(run: Run, path: str) -> Origin:
    """Returns the origin of a file or folder of the run's outputs. Raises RegistryError naming `path`."""
    folder = path.strip().strip("/")
    if not folder:
        raise RegistryError("path", "is required: name a file or a folder of the run's outputs")
    present, removed = all_of(run), removal_sentence(run, DataKind.OUTPUTS)
    if not present:
        raise RegistryError(
            "path",
            removed.rstrip(".")
            or f"{run} has no outputs; what a script writes to outputs/ is saved when the run ends",
        )
    # As given first: a script may itself have made a folder called outputs/ within the run's outputs.
    for source in dict.fromkeys((folder, folder.removeprefix(OUTPUTS))):
        chosen = files_below(source, present)
        if chosen:
            _check_settled(run, present, source)
            return Origin(RUN, chosen, source=f"runs:/{run.pk}/{source}", path=source, run=run)
    offered = [*choices_of(present)[:5], *(["…"] if len(present) > 5 else [])]
    raise RegistryError(
        "path", f"{folder!r} is not among the outputs of {run}; there are: {', '.join(offered)}"
    )


def _check_settled(run: Run, present: Iterable[SourceFile], source: str) -> None:
    """Raises RegistryError if one of the files below `source` lies in a datastore, where the run may still
    change it."""
    if run.state in FINAL:
        return
    for item in present:
        is_chosen = item.path == source or item.path.startswith(f"{source}/")
        if is_chosen and isinstance(item, StoredOutput) and item.folder.attempt == run.attempt:
            raise RegistryError(
                "path",
                f"{item.path} lies in a datastore, where {run} may still change it; register it once the run "
                "has ended",
            )


def files_below(source: str, present: Iterable[SourceFile]) -> tuple[File, ...]:
    """Returns the file `source` under its own name, or the files of the folder `source` with their paths
    inside it. An empty `source` stands for all files."""
    files = []
    for item in present:
        if item.path == source:
            path = PurePosixPath(item.path).name
        elif not source or item.path.startswith(f"{source}/"):
            path = item.path[len(source) + 1 :] if source else item.path
        else:
            continue
        files.append(File(path, item.size_bytes, item.sha256, _reference_to(item)))
    return tuple(files)


def _reference_to(item: SourceFile) -> StoreReference | None:
    if isinstance(item, StoredOutput):
        return StoreReference(item.folder.datastore_id, item.full_path, item.place)
    if isinstance(item, ReferencedFile):
        return StoreReference(item.datastore_id, item.store_path, item.place)
    return None


def _create_files(version: ModelVersion, files: Iterable[File]) -> list[ModelFile | ReferencedFile]:
    """Creates the rows, which the certificate lists in this order."""
    rows = [_file_row(version, item) for item in files]
    ModelFile.objects.bulk_create(row for row in rows if isinstance(row, ModelFile))
    ReferencedFile.objects.bulk_create(row for row in rows if isinstance(row, ReferencedFile))
    return rows


def _file_row(version: ModelVersion, item: File) -> ModelFile | ReferencedFile:
    columns = {"version": version, "path": item.path, "size_bytes": item.size_bytes}
    if item.reference is None:
        return ModelFile(**columns, sha256=item.sha256)
    return ReferencedFile(**columns, digest=item.sha256, **vars(item.reference))


def _next(workspace: Workspace, name: str) -> tuple[RegisteredModel, int]:
    # Of two that make the same model at once, one violates the unique constraint; get_or_create then reads
    # the other's row.
    model, _ = RegisteredModel.objects.get_or_create(workspace=workspace, name=name)
    # The UPDATE takes the row's lock before the number is read.
    RegisteredModel.objects.filter(pk=model.pk).update(
        last_version=F("last_version") + 1, updated_at=timezone.now()
    )
    model.refresh_from_db()
    return model, model.last_version


def _check_files(files: Sequence[File]) -> None:
    if not files:
        # A copy of a version whose logged model is still being uploaded: nothing would fill the copy later.
        raise RegistryError("source", "has no files yet; register it once they are uploaded")
    for item in files:
        # Downloads put the certificate's two files beside the version's own, under these names.
        if item.path in (CERTIFICATE, SIGNATURE):
            raise RegistryError(
                "path", f"{item.path} is the name of TrainHub's own certificate; leave that file out"
            )
        # `hold` renews the blob's time, so that the sweep spares it until the row that names it has been
        # committed. The hash of a referenced file names no blob.
        if item.reference is None and not blobs.hold(item.sha256):
            raise RegistryError(
                "path", f"the bytes of {item.path} are no longer on the hub; run the job again"
            )

"""Owners of artifact files, which are runs and logged models, with the caller's permissions checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from jobs import outputs
from jobs.models import Artifact, Run, StoredOutput
from jobs.outputs import rows_below
from jobs.retention.removals import removal_sentence
from jobs.states import DataKind
from tracking.artifacts import file_hints
from tracking.artifacts.paths import MODEL, RUN, Address
from tracking.callers import Caller
from tracking.mlflow import disk_room
from tracking.mlflow.lookup import DEFAULT_NAME, check_model_readable, check_readable
from tracking.mlflow.protocol.errors import DENIED, INVALID, MISSING, MlflowError
from tracking.models import LoggedModel, LoggedModelFile
from workspaces.states import Role
from workspaces.stored_files import blobs

# Files on the hub, and all that are listed: a file in a datastore has no bytes here, whatever its hash says.
FileRow = Artifact | LoggedModelFile
FileRows = QuerySet[FileRow]
ListedFile = FileRow | StoredOutput
StoredRows = QuerySet[StoredOutput]
ListedRows = QuerySet[ListedFile]


@dataclass(frozen=True)
class RunFiles:
    """Files of a run. `attempt` selects one attempt's files; 0, as for clients, the current file of every
    path."""

    run: Run
    attempt: int = 0

    @property
    def root(self) -> str:
        """The path of the run's files below `mlflow-artifacts:/`."""
        return f"{self.run.experiment_id}/{self.run.pk}/artifacts"

    @property
    def experiment_id(self) -> int:
        return self.run.experiment_id

    @property
    def rows(self) -> FileRows:
        """The current rows: one for each path."""
        return cast("FileRows", outputs.for_attempt(self.run, self.attempt))

    @property
    def stored_rows(self) -> StoredRows:
        """The current files that lie in a datastore."""
        return outputs.stored_for_attempt(self.run, self.attempt)

    @property
    def all_rows(self) -> FileRows:
        """The rows of all attempts on the hub, including those that a later attempt has replaced."""
        return cast("FileRows", Artifact.objects.filter(run=self.run))

    def lock(self) -> None:
        """Locks the run's row, so that a file and a folder of the same name cannot be created at the same
        time.

        NO KEY UPDATE does not block inserts of metrics, which refer to the row.
        """
        Run.objects.select_for_update(no_key=True).filter(pk=self.run.pk).values_list("pk").first()

    def put(self, path: str, sha256: str, size_bytes: int) -> None:
        outputs.put_output(self.run, self.run.attempt, path, sha256, size_bytes)


@dataclass(frozen=True)
class ModelFiles:
    """Files of a logged model; `run` is None for one that was logged outside a run."""

    model: LoggedModel

    @property
    def run(self) -> Run | None:
        return self.model.run

    @property
    def root(self) -> str:
        return f"{self.model.experiment_id}/models/{self.model.pk}/artifacts"

    @property
    def experiment_id(self) -> int:
        return self.model.experiment_id

    @property
    def rows(self) -> FileRows:
        return cast("FileRows", LoggedModelFile.objects.filter(model=self.model))

    @property
    def stored_rows(self) -> StoredRows:
        return StoredOutput.objects.none()

    @property
    def all_rows(self) -> FileRows:
        return self.rows

    def lock(self) -> None:
        LoggedModel.objects.select_for_update(no_key=True).filter(pk=self.model.pk).values_list("pk").first()

    def put(self, path: str, sha256: str, size_bytes: int) -> None:
        values = {"sha256": sha256, "size_bytes": size_bytes, "created_at": timezone.now()}
        LoggedModelFile.objects.update_or_create(model=self.model, path=path, defaults=values)


FileOwner = RunFiles | ModelFiles


def check_room(caller: Caller, place: FileOwner, size_bytes: int = 0) -> None:
    """Raises MlflowError if a quota of disk leaves no room for a file of this size (0: not known yet)."""
    disk_room.check_disk_room(caller, size_bytes, run=place.run, field="path")


def put_file(place: FileOwner, path: str, sha256: str, size_bytes: int) -> None:
    """Records a stored blob as the file `path` of the owner. Raises MlflowError if `path` is a folder, or one
    of its folders is a file."""
    with transaction.atomic():
        place.lock()
        _check_shape(place, path)
        place.put(path, sha256, size_bytes)
        _notify(place)


def remove(place: FileOwner, path: str) -> int:
    """Deletes a file, or a folder with its content ("": everything), in every attempt; returns the number of
    files. Raises MlflowError if one of them lies in a datastore."""
    stored = place.stored_rows.filter(path=path).first() or rows_below(place.stored_rows, path).first()
    if stored is not None:
        raise MlflowError(
            INVALID, f"'{stored.path}' lies in a datastore, at {stored.place}; the hub deletes nothing there."
        )
    deleted, _ = place.all_rows.filter(path=path).delete()
    deleted_below, _ = rows_below(place.all_rows, path).delete()
    _notify(place)
    return deleted + deleted_below


def find_owner(caller: Caller, address: Address) -> FileOwner:
    """Returns the owner of an address. Raises MlflowError (404) if the workspace has none."""
    place = model_files(caller, address.owner) if address.is_model else run_files(caller, address.owner)
    if place.experiment_id != address.experiment and not (address.experiment == 0 and _is_in_default(place)):
        raise MlflowError(MISSING, f"{address.owner} is not in the experiment {address.experiment}.")
    return place


def _is_in_default(place: FileOwner) -> bool:
    """Clients know the default experiment by the id 0 and may build addresses with it."""
    experiment = place.run.experiment if isinstance(place, RunFiles) else place.model.experiment
    return experiment.name == DEFAULT_NAME


def run_files(caller: Caller, run_id: str) -> RunFiles:
    run = (
        # Deleted runs too: until the purge their files can be read, and a write gets an error of its own.
        Run.objects.with_deleted_for_workspace(caller.workspace).filter(pk=run_id).first()
        if RUN.match(run_id)
        else None
    )
    if run is None:
        raise MlflowError(MISSING, f"Run with id={run_id[:64]} not found.")
    return RunFiles(check_readable(caller, run))


def model_files(caller: Caller, model_id: str) -> ModelFiles:
    models = LoggedModel.objects.select_related("run", "experiment").filter(
        experiment__workspace=caller.workspace
    )
    model = models.filter(pk=model_id, deleted_at=None).first() if MODEL.match(model_id) else None
    if model is None:
        raise MlflowError(MISSING, f"Logged model with ID '{model_id[:64]}' not found.")
    check_model_readable(caller, model.run)
    return ModelFiles(model)


def writable_owner(caller: Caller, address: Address) -> FileOwner:
    """Returns the owner of an address for writing. Raises MlflowError, 403 without permission."""
    return _check_writable(caller, find_owner(caller, address))


def writable_run_files(caller: Caller, run_id: str) -> FileOwner:
    return _check_writable(caller, run_files(caller, run_id))


def find_file(place: FileOwner, path: str) -> ListedFile:
    """Returns the file's row. Raises MlflowError if the path is no file, or its bytes are missing on the
    hub."""
    row = place.rows.filter(path=path).first()
    if row is None:
        if (stored := place.stored_rows.filter(path=path).first()) is not None:
            return stored
        if rows_below(place.rows, path).exists() or rows_below(place.stored_rows, path).exists():
            raise MlflowError(INVALID, f"Artifact path refers to a directory, not a file: '{path}'")
        removed = removal_sentence(place.run, DataKind.OUTPUTS) if place.run is not None else ""
        raise MlflowError(MISSING, removed or f"No such artifact: '{path}'")
    if not blobs.exists(row.sha256):
        raise MlflowError(MISSING, f"The bytes of '{path}' {blobs.absence(row.sha256)}.")
    return row


def find_hub_file(place: FileOwner, path: str) -> FileRow:
    """Returns the row of a file on the hub. Raises MlflowError as `find_file` does, and for one in a
    datastore."""
    row = find_file(place, path)
    if isinstance(row, StoredOutput):
        raise MlflowError(INVALID, f"'{path}' lies in a datastore, at {row.place}: download it.")
    return row


def _check_writable(caller: Caller, place: FileOwner) -> FileOwner:
    if place.run is not None and place.run.deleted_at is not None:
        raise MlflowError(INVALID, f"Run {place.run.pk} is deleted; restore it before you log to it.")
    may = (
        caller.may(Role.CONTRIBUTOR) and caller.job is None
        if place.run is None
        else caller.may_write(place.run)
    )
    if not may:
        sentence = (
            "A job logs to itself, and to the runs and models that it has created; this is not one of them."
        )
        if caller.job is None:
            sentence = (
                f"Logging needs the role {Role.CONTRIBUTOR}; you are {caller.role} of {caller.workspace}."
            )
        raise MlflowError(DENIED, sentence)
    return place


def _notify(place: FileOwner) -> None:
    if place.run is not None:
        file_hints.files_changed(place.run.pk)


def _check_shape(place: FileOwner, path: str) -> None:
    parts = path.split("/")
    folders: Sequence[str] = ["/".join(parts[:count]) for count in range(1, len(parts))]
    conflict = _first_path(place, folders) if folders else None
    if conflict is not None:
        raise MlflowError(
            INVALID,
            f"path: '{conflict}' is a file, and '{path}' would need a folder of that name. Choose another.",
        )
    # Replacing a file needs no search for a folder of its name.
    if _first_path(place, [path]) is None and (
        rows_below(place.rows, path).exists() or rows_below(place.stored_rows, path).exists()
    ):
        raise MlflowError(INVALID, f"path: '{path}' is a folder. Choose another name for the file.")


def _first_path(place: FileOwner, paths: Sequence[str]) -> str | None:
    """Returns the first of the paths at which the owner has a file."""
    row = place.rows.filter(path__in=paths).first() or place.stored_rows.filter(path__in=paths).first()
    return None if row is None else row.path

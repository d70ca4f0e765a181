"""Whose files they are: a run's or a logged model's, found for who asks, and changed by who may."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from django.db import connection, transaction
from django.db.models import QuerySet, Value
from django.db.models.functions import Substr
from django.utils import timezone

from jobs import outputs
from jobs.models import Artifact, Run
from tracking.artifacts import file_hints
from tracking.artifacts.paths import MODEL, RUN, Address
from tracking.callers import Caller
from tracking.mlflow.lookup import DEFAULT_NAME
from tracking.mlflow.protocol.errors import DENIED, INVALID, MISSING, MlflowError
from tracking.models import LoggedModel, LoggedModelFile
from workspaces.states import Role
from workspaces.stored_files import blobs

Row = Artifact | LoggedModelFile
Rows = QuerySet[Row]


@dataclass(frozen=True)
class RunFiles:
    """`attempt`: read what one left; 0 (as clients do) for what counts of all."""

    run: Run
    attempt: int = 0

    @property
    def root(self) -> str:
        """Its address below `mlflow-artifacts:/`."""
        return f"{self.run.experiment_id}/{self.run.pk}/artifacts"

    @property
    def experiment_id(self) -> int:
        return self.run.experiment_id

    @property
    def rows(self) -> Rows:
        """Each path once."""
        return cast("Rows", outputs.of_attempt(self.run, self.attempt))

    @property
    def all_rows(self) -> Rows:
        """Those that a later attempt has replaced, too."""
        return cast("Rows", Artifact.objects.filter(run=self.run))

    def lock(self) -> None:
        """Of two that name a file and a folder alike at once, one sees the other's. Logging goes on
        meanwhile."""
        Run.objects.select_for_update(no_key=True).filter(pk=self.run.pk).values_list("pk").first()

    def put(self, path: str, sha256: str, size_bytes: int) -> None:
        outputs.put(self.run, self.run.attempt, path, sha256, size_bytes)


@dataclass(frozen=True)
class ModelFiles:
    """Of a model that a run has logged, or (`run` None) that was logged outside of any."""

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
    def rows(self) -> Rows:
        return cast("Rows", LoggedModelFile.objects.filter(model=self.model))

    @property
    def all_rows(self) -> Rows:
        return self.rows

    def lock(self) -> None:
        LoggedModel.objects.select_for_update(no_key=True).filter(pk=self.model.pk).values_list("pk").first()

    def put(self, path: str, sha256: str, size_bytes: int) -> None:
        told = {"sha256": sha256, "size_bytes": size_bytes, "created_at": timezone.now()}
        LoggedModelFile.objects.update_or_create(model=self.model, path=path, defaults=told)


Place = RunFiles | ModelFiles


def put(place: Place, path: str, sha256: str, size_bytes: int) -> None:
    """Name a stored blob. Raises MlflowError where a file would have to be a folder, or the other way
    round."""
    with transaction.atomic():
        place.lock()
        _check_shape(place.rows, path)
        place.put(path, sha256, size_bytes)
        _tell(place)


def remove(place: Place, path: str) -> int:
    """A file, or a folder with all that is in it ("": everything), in every attempt; how many files went."""
    gone, _ = place.all_rows.filter(path=path).delete()
    inside, _ = below(place.all_rows, path).delete()
    _tell(place)
    return gone + inside


def below(rows: QuerySet, path: str) -> QuerySet:
    """Of the files, those in a folder and in its folders; "" is the root."""
    if not path:
        return rows
    start = f"{path}/"
    if connection.vendor == "sqlite":
        # In order of code points: up to the sign after the slash.
        return rows.filter(path__gte=start, path__lt=f"{path}0")
    # Elsewhere the order may be that of a language.
    return rows.alias(start=Substr("path", 1, len(start))).filter(start=Value(start))


def find(caller: Caller, address: Address) -> Place:
    """Raises MlflowError (404) for what is not there, or in another workspace."""
    place = of_model(caller, address.owner) if address.is_model else of_run(caller, address.owner)
    if place.experiment_id != address.experiment and not (address.experiment == 0 and _is_in_default(place)):
        raise MlflowError(MISSING, f"{address.owner} is not in the experiment {address.experiment}.")
    return place


def _is_in_default(place: Place) -> bool:
    """Clients know the default experiment by the id 0 and may build addresses from that."""
    experiment = place.run.experiment if isinstance(place, RunFiles) else place.model.experiment
    return experiment.name == DEFAULT_NAME


def of_run(caller: Caller, run_id: str) -> RunFiles:
    run = Run.objects.ever_of(caller.workspace).filter(pk=run_id).first() if RUN.match(run_id) else None
    if run is None:
        raise MlflowError(MISSING, f"Run with id={run_id[:64]} not found.")
    return RunFiles(run)


def of_model(caller: Caller, model_id: str) -> ModelFiles:
    models = LoggedModel.objects.select_related("run", "experiment").filter(
        experiment__workspace=caller.workspace
    )
    model = models.filter(pk=model_id, deleted_at=None).first() if MODEL.match(model_id) else None
    if model is None:
        raise MlflowError(MISSING, f"Logged model with ID '{model_id[:64]}' not found.")
    return ModelFiles(model)


def writable(caller: Caller, address: Address) -> Place:
    """The same for who wants to change it; raises MlflowError (403) where they may not."""
    return _checked(caller, find(caller, address))


def writable_run(caller: Caller, run_id: str) -> Place:
    return _checked(caller, of_run(caller, run_id))


def row_at(place: Place, path: str) -> Row:
    """The file; raises MlflowError for what is none."""
    row = place.rows.filter(path=path).first()
    if row is None:
        if below(place.rows, path).exists():
            raise MlflowError(INVALID, f"Artifact path refers to a directory, not a file: '{path}'")
        raise MlflowError(MISSING, f"No such artifact: '{path}'")
    if not blobs.exists(row.sha256):
        raise MlflowError(MISSING, f"The bytes of '{path}' {blobs.absence(row.sha256)}.")
    return row


def _checked(caller: Caller, place: Place) -> Place:
    if place.run is not None and place.run.deleted_at is not None:
        raise MlflowError(INVALID, f"Run {place.run.pk} is deleted; restore it before you log to it.")
    may = (
        caller.may(Role.CONTRIBUTOR) and caller.job is None
        if place.run is None
        else caller.may_write(place.run)
    )
    if not may:
        sentence = "A job logs to itself, and to the runs and models that it has made; this is another's."
        if caller.job is None:
            sentence = (
                f"Logging needs the role {Role.CONTRIBUTOR}; you are {caller.role} of {caller.workspace}."
            )
        raise MlflowError(DENIED, sentence)
    return place


def _tell(place: Place) -> None:
    if place.run is not None:
        file_hints.changed(place.run.pk)


def _check_shape(rows: Rows, path: str) -> None:
    parts = path.split("/")
    folders: Sequence[str] = ["/".join(parts[:count]) for count in range(1, len(parts))]
    taken = rows.filter(path__in=folders).values_list("path", flat=True).first() if folders else None
    if taken is not None:
        raise MlflowError(
            INVALID,
            f"path: '{taken}' is a file, and '{path}' would need a folder of that name. Choose another.",
        )
    if not rows.filter(path=path).exists() and below(rows, path).exists():
        raise MlflowError(INVALID, f"path: '{path}' is a folder. Choose another name for the file.")

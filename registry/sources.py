"""Resolves the address that a client gives as a version's source to files of this hub and workspace, or
refuses it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http.request import validate_host

from jobs.models import Run
from jobs.outputs import all_of
from registry.errors import RegistryError
from registry.lookup import version_named
from registry.models import ModelVersion
from registry.registration import LOGGED_MODEL, PENDING, RUN, VERSION, Origin, files_below
from tracking.artifacts import paths
from tracking.callers import Caller
from tracking.mlflow.protocol.errors import MlflowError
from tracking.models import LoggedModel, RunOutput

SCHEMES = ("runs", "models", "mlflow-artifacts")
MAX_LISTED = 200
LONGEST = 2000
REGISTERED = "models/"
_RUNS = re.compile(r"/(?P<run>[0-9a-f]{32})(?:/(?P<path>.*))?\Z", re.DOTALL)


@dataclass(frozen=True)
class SourceRequest:
    """The source that a client gives. `run_id` and `model_id`: the run and the logged model that it expects
    there, or ""."""

    source: str
    run_id: str = ""
    model_id: str = ""


def resolve(caller: Caller, request: SourceRequest) -> Origin:
    """Returns the files at that address. Raises RegistryError naming `source`, and PermissionDenied if a job
    names files of another run."""
    source = request.source
    # urlsplit drops tabs and line breaks silently: the stored text would differ from the address that was
    # checked.
    if len(source) > LONGEST or any(ord(sign) < 32 for sign in source):
        raise RegistryError("source", f"is longer than {LONGEST} characters, or has control characters")
    parts = urlsplit(source)
    if parts.scheme not in SCHEMES or parts.query or parts.fragment:
        _refuse(source, "is no address of this TrainHub")
    # Of these addresses only MLflow's artifact addresses have a host, and clients write this hub's own there.
    if parts.netloc and not (parts.scheme == "mlflow-artifacts" and _is_own(parts.netloc)):
        _refuse(source, f"names the host {parts.netloc[:80]!r}, which is not this TrainHub")
    if parts.scheme == "runs":
        origin = _of_runs(caller, source, parts.path)
    elif parts.scheme == "models":
        origin = _of_models(caller, source, parts.path.strip("/"))
    else:
        origin = _of_artifacts(caller, source, parts.path.lstrip("/"))
    _check_statement(origin, request)
    _check_own(caller, origin)
    return origin


def _is_own(netloc: str) -> bool:
    host = urlsplit(f"//{netloc}").hostname or ""
    # Nothing connects to that host: the files are looked up in this hub's database.
    return host == urlsplit(settings.PUBLIC_URL).hostname or validate_host(host, settings.ALLOWED_HOSTS)


def _of_runs(caller: Caller, source: str, path: str) -> Origin:
    match = _RUNS.match(path)
    if match is None:
        _refuse(source, "is not of the form runs:/<run id>/<path>")
    run, path_inside = _run(caller, source, match["run"]), _checked(source, (match["path"] or "").strip("/"))
    if files := files_below(path_inside, all_of(run)):
        return Origin(RUN, files, source=source, path=path_inside, run=run)
    # MLflow's client registers a logged model by its name as runs:/ID/NAME, though its files are not among
    # the run's artifacts.
    name, _, inner = path_inside.partition("/")
    models = LoggedModel.objects.select_related("run", "experiment").filter(
        run=run, name=name, deleted_at=None
    )
    if models:
        # Several logged models of a run may have the same name; the one of the latest step is meant.
        steps = dict(RunOutput.objects.filter(run=run, model__in=models).values_list("model_id", "step"))
        newest = max(models, key=lambda model: (steps.get(model.pk, -1), model.created_at))
        return _of_logged(source, newest, inner)
    return _refuse(source, f"names {path_inside!r}, which {run} has not logged")


def _of_models(caller: Caller, source: str, name: str) -> Origin:
    if paths.MODEL.match(name):
        return _of_logged(source, _logged(caller, source, name), "")
    version = version_named(caller.workspace, name)
    if version is None:
        _refuse(source, "names no logged model and no registered version of this workspace")
    return _of_version(version)


def _of_artifacts(caller: Caller, source: str, text: str) -> Origin:
    if text.startswith(REGISTERED):
        # The name is quoted in these addresses by `registry.mlflow.row_json.address`, which gives them out.
        name, _, number = unquote(text.removeprefix(REGISTERED)).partition("/")
        version = version_named(caller.workspace, f"{name}/{number}")
        if version is None or "/" in number:
            _refuse(source, "names no registered version of this workspace")
        return _of_version(version)
    try:
        address = paths.parse_address(text, is_folder=True)
    except MlflowError as error:
        raise RegistryError(
            "source", f"{source[:MAX_LISTED]!r} names nothing here: {error.message}"
        ) from error
    if address.is_model:
        model = _logged(caller, source, address.owner)
        owner: Run | LoggedModel = model
        origin = _of_logged(source, model, address.path)
    else:
        owner = _run(caller, source, address.owner)
        files = files_below(address.path, all_of(owner))
        if not files:
            _refuse(source, f"names {address.path or 'the artifacts'!r}, which {owner} has not logged")
        origin = Origin(RUN, files, source=source, path=address.path, run=owner)
    if owner.experiment_id != address.experiment:
        _refuse(source, "names an experiment in which that is not")
    return origin


def _of_logged(source: str, model: LoggedModel, path: str) -> Origin:
    files = files_below(_checked(source, path.strip("/")), model.files.all())
    # The client may register a model before it has sent the model's files; the version gets them then.
    if not files and (model.status != PENDING or model.files.exists()):
        _refuse(source, f"names the logged model {model.name!r} ({model.status}), which has no such files")
    return Origin(LOGGED_MODEL, files, source=source, path=path, run=model.run, logged_model=model)


def _of_version(version: ModelVersion) -> Origin:
    return Origin(
        VERSION,
        files_below("", version.all_files),
        source=f"models:/{version.model.name}/{version.number}",
        path=version.source_path,
        run=version.run,
        logged_model=version.logged_model,
        parent=version,
    )


def _run(caller: Caller, source: str, run_id: str) -> Run:
    run: Run | None = (
        Run.objects.for_workspace(caller.workspace)
        .select_related("experiment", "parent")
        .filter(pk=run_id)
        .first()
    )
    if run is None:
        _refuse(source, "names no run of this workspace")
    return run


def _logged(caller: Caller, source: str, model_id: str) -> LoggedModel:
    models = LoggedModel.objects.select_related("run", "experiment").filter(
        experiment__workspace=caller.workspace
    )
    model = models.filter(pk=model_id, deleted_at=None).first()
    # A deleted run can still be restored, so its logged models have rows, but they count as deleted too.
    if model is None or (model.run is not None and model.run.deleted_at is not None):
        _refuse(source, "names no logged model of this workspace")
    return model


def _checked(source: str, path: str) -> str:
    try:
        return paths.folder_path(path)
    except MlflowError as error:
        raise RegistryError("source", f"{source[:MAX_LISTED]!r}: {error.message}") from error


def _check_statement(origin: Origin, request: SourceRequest) -> None:
    run_id = origin.run.pk if origin.run else ""
    model_id = origin.logged_model.pk if origin.logged_model else ""
    if request.run_id and request.run_id != run_id:
        raise RegistryError(
            "run_id", f"must be the run that the source is of ({run_id or 'none'}), or be left out"
        )
    if request.model_id and request.model_id != model_id:
        raise RegistryError(
            "model_id",
            f"must be the logged model that the source is of ({model_id or 'none'}), or be left out",
        )


def _check_own(caller: Caller, origin: Origin) -> None:
    if caller.job is not None and (origin.run is None or not caller.may_write(origin.run)):
        sentence = (
            f"The token of run {caller.job.number} registers what that run has made; this is another's. "
            "Use an API token of your own."
        )
        raise PermissionDenied(sentence)


def _refuse(source: str, why: str) -> NoReturn:
    raise RegistryError(
        "source",
        f"{source[:MAX_LISTED]!r} {why}; give runs:/<run id>/<path>, models:/<logged model's id>, "
        "models:/<name>/<version>, "
        "or an mlflow-artifacts:/ address of a run or logged model of this workspace",
    )

"""Runs in MLflow's JSON format, with their metrics, params, tags, inputs and outputs. The number of queries
does not depend on the number of runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from jobs.models import Experiment, Run, RunTag
from jobs.states import RunState
from tracking.callers import Caller
from tracking.mlflow.lookup import EXPERIMENT_TAG, default_key, public_id
from tracking.mlflow.protocol.fields import JsonObject
from tracking.mlflow.protocol.row_json import ARTIFACTS, json_number, lifecycle_stage, unix_ms, without_empty
from tracking.mlflow.run_tags import NAME
from tracking.models import Metric, Param, RunInput, RunOutput
from workspaces.models import User

BATCH_SIZE = 1000
# RunInput.source_type of an input that is a logged model instead of a data set.
MODEL = "logged_model"
STATUS: dict[str, str] = {
    RunState.QUEUED: "SCHEDULED",
    RunState.PROVISIONING: "SCHEDULED",
    RunState.PREPARING: "SCHEDULED",
    RunState.RUNNING: "RUNNING",
    RunState.FINALIZING: "RUNNING",
    RunState.CANCEL_REQUESTED: "RUNNING",
    RunState.COMPLETED: "FINISHED",
    RunState.FAILED: "FAILED",
    RunState.CANCELED: "KILLED",
}
_Lists = defaultdict[str, list[JsonObject]]


def runs_json(caller: Caller, rows: Sequence[Run]) -> list[JsonObject]:
    """Returns the runs with everything they logged, in the same order."""
    return [
        record
        for first in range(0, len(rows), BATCH_SIZE)
        for record in _full_batch(caller, rows[first : first + BATCH_SIZE])
    ]


def run_info_json(caller: Caller, row: Run) -> JsonObject:
    experiment = public_id(_visible_experiment_id(caller, row), default_key(caller))
    return _run_info(row, _users([row]).get(row.created_by_id or 0, ""), experiment)


def _full_batch(caller: Caller, rows: Sequence[Run]) -> Iterator[JsonObject]:
    keys = [row.pk for row in rows]
    users = _users(rows)
    metrics, params, tags = _metrics(keys), _key_values(Param, keys), _key_values(RunTag, keys)
    data, models = _inputs(keys)
    outputs = _outputs(keys)
    default = default_key(caller)
    for row in rows:
        # Clients read the name from this tag. It is not stored, so it cannot differ from the run's name.
        record = [*tags[row.pk], {"key": NAME, "value": row.display_name}]
        yield {
            "info": _run_info(
                row,
                users.get(row.created_by_id or 0, ""),
                public_id(_visible_experiment_id(caller, row), default),
            ),
            "data": without_empty({"metrics": metrics[row.pk], "params": params[row.pk], "tags": record}),
            "inputs": without_empty({"dataset_inputs": data[row.pk], "model_inputs": models[row.pk]}),
            "outputs": without_empty({"model_outputs": outputs[row.pk]}),
        }


def _run_info(row: Run, user: str, experiment_id: str) -> JsonObject:
    return without_empty(
        {
            "run_id": row.pk,
            "run_uuid": row.pk,
            "run_name": row.display_name,
            "experiment_id": experiment_id,
            "user_id": user,
            "status": STATUS[row.state],
            "start_time": unix_ms(row.started_at or row.created_at),
            "end_time": unix_ms(row.finished_at) if row.finished_at else None,
            "artifact_uri": f"{ARTIFACTS}/{row.experiment_id}/{row.pk}/artifacts",
            "lifecycle_stage": lifecycle_stage(row.deleted_at),
        }
    )


def _visible_experiment_id(caller: Caller, row: Run) -> int:
    """Returns the id of the experiment to show to the caller.

    A job's script sees its own run in the experiment that it has set: MLflow's client refuses to resume a run
    of another experiment.
    """
    if caller.job is None or row.pk != caller.job.pk:
        return row.experiment_id
    names = RunTag.objects.filter(run=row, key=EXPERIMENT_TAG).values("value")
    by_run = (
        Experiment.objects.filter(workspace=caller.workspace, name__in=names)
        .values_list("pk", flat=True)
        .first()
    )
    return by_run or row.experiment_id


def _users(rows: Iterable[Run]) -> dict[int, str]:
    return dict(User.objects.filter(pk__in={row.created_by_id for row in rows}).values_list("pk", "username"))


def _metrics(keys: Sequence[str]) -> _Lists:
    """Returns the last point of each key, by run. A null value in a row means NaN."""
    by_run: _Lists = defaultdict(list)
    rows = Metric.objects.filter(run_id__in=keys).order_by("run_id", "key")
    for run_id, key, value, at, step in rows.values_list(
        "run_id", "key", "last_value", "last_ms", "last_step"
    ):
        spelled = "NaN" if value is None else json_number(value)
        by_run[run_id].append({"key": key, "value": spelled, "timestamp": at, "step": step})
    return by_run


def _key_values(model: type[Param | RunTag], keys: Sequence[str]) -> _Lists:
    by_run: _Lists = defaultdict(list)
    rows = model.objects.filter(run_id__in=keys).order_by("run_id", "key")
    for run_id, key, value in rows.values_list("run_id", "key", "value"):
        by_run[run_id].append({"key": key, "value": value})
    return by_run


def _inputs(keys: Sequence[str]) -> tuple[_Lists, _Lists]:
    """Returns the input data sets and the input models, each by run."""
    data: _Lists = defaultdict(list)
    models: _Lists = defaultdict(list)
    for row in RunInput.objects.filter(run_id__in=keys).order_by("id"):
        if row.source_type == MODEL:
            models[row.run_id].append({"model_id": row.name})
            continue
        dataset = {
            "name": row.name,
            "digest": row.digest,
            "source_type": row.source_type,
            "source": row.source,
            "schema": row.schema,
            "profile": row.profile,
        }
        tags = [{"key": key, "value": value} for key, value in row.tags.items()]
        data[row.run_id].append(without_empty({"tags": tags, "dataset": without_empty(dataset)}))
    return data, models


def _outputs(keys: Sequence[str]) -> _Lists:
    by_run: _Lists = defaultdict(list)
    rows = RunOutput.objects.filter(run_id__in=keys).order_by("id")
    for run_id, model_id, step in rows.values_list("run_id", "model_id", "step"):
        by_run[run_id].append({"model_id": model_id, "step": step})
    return by_run

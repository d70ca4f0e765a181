"""MLflow calls that create, read, update, delete, restore and search runs. TrainHub itself owns the state of
a job's run; clients can only set tags on it."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import transaction

from jobs import external, tags
from jobs.errors import Conflict
from jobs.models import Run
from jobs.retention import deletion
from jobs.states import RunKind, RunState
from tracking.callers import Caller
from tracking.mlflow import disk_room, experiments, lookup, run_cache, run_json, run_tags
from tracking.mlflow.default_names import random_name
from tracking.mlflow.logging_calls import parse_tags
from tracking.mlflow.protocol import fields, key_rules, page_tokens, row_json
from tracking.mlflow.protocol.errors import INVALID, MlflowError
from tracking.mlflow.protocol.fields import CallArgs, JsonObject
from tracking.search import FilterError, find_runs

STATUSES = ("RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED")
STATES = {
    "RUNNING": RunState.RUNNING,
    # External runs have no queue, so a scheduled one counts as running.
    "SCHEDULED": RunState.RUNNING,
    "FINISHED": RunState.COMPLETED,
    "FAILED": RunState.FAILED,
    "KILLED": RunState.CANCELED,
}
VIEWS = ("ACTIVE_ONLY", "DELETED_ONLY", "ALL")
MAX_RESULTS = 50_000
# A primary key that no experiment has; it stands for the default experiment while that has no row.
NO_ROW = 0
# The end of the year 9999, the last time that databases can store.
MAX_TIME_MS = 253_402_300_799_000


def create_run(caller: Caller, args: CallArgs) -> JsonObject:
    """Creates an external run; one that a job's process creates becomes a child of that job's run."""
    experiment = experiments.check_active(
        lookup.stored_experiment(caller, fields.text(args, "experiment_id"))
    )
    if caller.job is None:
        disk_room.check_disk_room(caller, field="experiment_id")
    tags = parse_tags(fields.objects(args, "tags"))
    name = fields.text(args, "run_name") or ""
    tagged_name = tags.pop(run_tags.NAME, "")
    if name and tagged_name and name != tagged_name:
        sentence = (
            "Both 'run_name' argument and 'mlflow.runName' tag are specified, but with different values "
            f"(run_name='{name}', mlflow.runName='{tagged_name}')."
        )
        raise MlflowError(INVALID, sentence)
    name = name or tagged_name or random_name()
    tags |= key_rules.full_name(name)
    parent = run_tags.parent_of(caller, tags)
    if parent is not None:
        tags.setdefault(run_tags.PARENT, parent.pk)
    new_run = external.ExternalRunStart(
        key_rules.shorten_key(name, key_rules.MAX_NAME_LENGTH), tags, parent, _time_field(args, "start_time")
    )
    with transaction.atomic():
        run = external.create_run(experiment, caller.user, new_run)
        run_tags.link_pending(run)
    return {"run": run_json.runs_json(caller, [run])[0]}


def get_run(caller: Caller, args: CallArgs) -> JsonObject:
    return {"run": run_json.runs_json(caller, [lookup.run(caller, fields.run_id(args))])[0]}


def update_run(caller: Caller, args: CallArgs) -> JsonObject:
    """Renames a run and, if it is external, sets its state. For a job's run, the client's status is only
    stored as a tag."""
    run = lookup.writable_run(caller, fields.run_id(args))
    status, ended_at = fields.choice(args, "status", STATUSES), _time_field(args, "end_time")
    with transaction.atomic():
        if name := fields.text(args, "run_name"):
            run_tags.rename_run(run, name)
        if run.kind != RunKind.EXTERNAL:
            tags.set_tags(run, _client_tags(status, ended_at))
        elif status:
            external.set_state(run, STATES[status], caller.user, at=ended_at)
        # A client may correct the end time alone; the state stays the same.
        elif ended_at is not None:
            external.set_state(run, RunState(run.state), caller.user, at=ended_at)
    # The changes above were made by queries; the loaded row does not have them yet.
    run.refresh_from_db(fields=["display_name", "state", "finished_at", "started_at"])
    return {"run_info": run_json.run_info_json(caller, run)}


def delete(caller: Caller, args: CallArgs) -> None:
    run = lookup.run(caller, fields.run_id(args))
    try:
        deletion.delete(_check_deletable(caller, run), experiments.acting_user(caller))
    except Conflict as error:
        raise MlflowError(INVALID, str(error)) from error
    finally:
        # All cached runs: nested ones were deleted with it.
        run_cache.forget_run()


def restore(caller: Caller, args: CallArgs) -> None:
    run = lookup.run(caller, fields.run_id(args))
    try:
        deletion.restore(_check_deletable(caller, run), experiments.acting_user(caller))
    except Conflict as error:
        raise MlflowError(INVALID, str(error)) from error
    finally:
        # All cached runs: nested ones, and parents, were restored with it.
        run_cache.forget_run()


def delete_run_tag(caller: Caller, args: CallArgs) -> None:
    with transaction.atomic():
        run_tags.drop_run_tag(
            lookup.writable_run(caller, fields.run_id(args)), fields.required_text(args, "key")
        )


def search_runs(caller: Caller, args: CallArgs) -> JsonObject:
    view = fields.choice(args, "run_view_type", VIEWS) or VIEWS[0]
    limit, skip = fields.max_results(args, 1000, MAX_RESULTS), page_tokens.offset_of(args)
    try:
        result = find_runs(
            caller.workspace,
            experiments=experiment_ids(caller, fields.texts(args, "experiment_ids")),
            text=fields.text(args, "filter") or "",
            order_by=fields.texts(args, "order_by"),
            view=view,
            limit=limit,
            skip=skip,
        )
    except FilterError as error:
        raise MlflowError(INVALID, f"Invalid {error.field}: {error}") from error
    page: JsonObject = {"runs": run_json.runs_json(caller, result.runs)}
    return row_json.without_empty(
        page | ({"next_page_token": page_tokens.encode_offset(skip + limit)} if result.has_more else {})
    )


def experiment_ids(caller: Caller, ids: list[str]) -> list[int]:
    """Returns the ids as primary keys; they may belong to other workspaces, so queries must filter by
    workspace."""
    keys = []
    for key in ids:
        if key == lookup.DEFAULT_ID:
            keys.append(lookup.experiment(caller, key).pk or NO_ROW)
        # 18 digits always fit into a primary key of 64 bits.
        elif key.isascii() and key.isdecimal() and len(key) <= 18:
            keys.append(int(key))
        else:
            raise MlflowError(
                INVALID, f"Invalid experiment ID '{key[:100]}'. Experiment ID must be a valid integer."
            )
    return keys


def _check_deletable(caller: Caller, run: Run) -> Run:
    """Checks that the caller may write to the run, whether or not it is deleted."""
    # `check_writable` refuses deleted runs, but here they are allowed: a run may be restored, or deleted
    # twice.
    deleted_at, run.deleted_at = run.deleted_at, None
    lookup.check_writable(caller, run)
    run.deleted_at = deleted_at
    return run


def _time_field(args: CallArgs, name: str) -> datetime | None:
    """Returns the field's Unix milliseconds as a datetime; None if it is missing or 0, which means
    unknown."""
    value = fields.integer(args, name)
    if not value:
        return None
    if not 0 < value <= MAX_TIME_MS:
        raise fields.invalid(name, value, "It must be Unix milliseconds before the year 10000.")
    return datetime.fromtimestamp(value / 1000, UTC)


def _client_tags(status: str, ended_at: datetime | None) -> dict[str, str]:
    values = {run_tags.STATUS: status} if status else {}
    return values | ({run_tags.END_TIME: ended_at.isoformat()} if ended_at else {})

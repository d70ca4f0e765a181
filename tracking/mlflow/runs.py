"""Runs: begun, found, renamed, ended, deleted and brought back. Of a job's own run a client says nothing but
tags."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from jobs import external, tags
from jobs.errors import Conflict
from jobs.models import Run
from jobs.retention import deletion
from jobs.states import RunState
from tracking.callers import Caller
from tracking.mlflow import experiments, lookup, run_cache, run_json, run_tags
from tracking.mlflow.default_names import given_name
from tracking.mlflow.logging_calls import pairs
from tracking.mlflow.protocol import fields, key_rules, page_tokens, row_json
from tracking.mlflow.protocol.errors import INVALID, MlflowError
from tracking.mlflow.protocol.http import Asked
from tracking.search import FilterError, find

STATUSES = ("RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED")
STATES = {
    "RUNNING": RunState.RUNNING,
    "SCHEDULED": RunState.RUNNING,
    "FINISHED": RunState.COMPLETED,
    "FAILED": RunState.FAILED,
    "KILLED": RunState.CANCELED,
}
VIEWS = ("ACTIVE_ONLY", "DELETED_ONLY", "ALL")
MOST_AT_ONCE = 50_000
NO_ROW = 0
"""The key of no experiment: the default one has no row before something is logged to it."""
LATEST_MS = 253_402_300_799_000
"""The end of the year 9999: what a database can say of time."""


def create(caller: Caller, asked: Asked) -> dict[str, Any]:
    """A run from elsewhere. What a job's process begins is part of that job."""
    experiment = experiments.check_active(
        lookup.stored_experiment(caller, fields.text(asked, "experiment_id"))
    )
    told = pairs(fields.objects(asked, "tags"))
    name = fields.text(asked, "run_name") or ""
    tagged = told.pop(run_tags.NAME, "")
    if name and tagged and name != tagged:
        sentence = (
            "Both 'run_name' argument and 'mlflow.runName' tag are specified, but with different values "
            f"(run_name='{name}', mlflow.runName='{tagged}')."
        )
        raise MlflowError(INVALID, sentence)
    name = name or tagged or given_name()
    told |= key_rules.full_name(name)
    parent = run_tags.parent_of(caller, told)
    if parent is not None:
        told.setdefault(run_tags.PARENT, parent.pk)
    begun = external.Begun(
        key_rules.shortened(name, key_rules.LONGEST_NAME), told, parent, _moment(asked, "start_time")
    )
    with transaction.atomic():
        made = external.begin(experiment, caller.user, begun)
        run_tags.link_waiting(made)
    return {"run": run_json.runs(caller, [made])[0]}


def get(caller: Caller, asked: Asked) -> dict[str, Any]:
    return {"run": run_json.runs(caller, [lookup.run(caller, fields.run_id(asked))])[0]}


def update(caller: Caller, asked: Asked) -> dict[str, Any]:
    """The name; and of a run from elsewhere how it stands. A job's own state is TrainHub's: what its client
    says is kept."""
    found = lookup.writable_run(caller, fields.run_id(asked))
    status, ended_at = fields.choice(asked, "status", STATUSES), _moment(asked, "end_time")
    with transaction.atomic():
        if name := fields.text(asked, "run_name"):
            run_tags.rename(found, name)
        if found.kind != external.KIND:
            tags.put(found, _said(status, ended_at))
        elif status:
            external.move(found, STATES[status], caller.user, at=ended_at)
        elif ended_at is not None:
            external.move(found, RunState(found.state), caller.user, at=ended_at)
    found.refresh_from_db(fields=["display_name", "state", "finished_at", "started_at"])
    return {"run_info": run_json.info(caller, found)}


def delete(caller: Caller, asked: Asked) -> None:
    found = lookup.run(caller, fields.run_id(asked))
    try:
        deletion.delete(_as_writable(caller, found), experiments.person(caller))
    except Conflict as error:
        raise MlflowError(INVALID, str(error)) from error
    finally:
        run_cache.forget()


def restore(caller: Caller, asked: Asked) -> None:
    found = lookup.run(caller, fields.run_id(asked))
    try:
        deletion.restore(_as_writable(caller, found), experiments.person(caller))
    except Conflict as error:
        raise MlflowError(INVALID, str(error)) from error
    finally:
        run_cache.forget()


def delete_tag(caller: Caller, asked: Asked) -> None:
    with transaction.atomic():
        run_tags.drop(lookup.writable_run(caller, fields.run_id(asked)), fields.words(asked, "key"))


def search(caller: Caller, asked: Asked) -> dict[str, Any]:
    view = fields.choice(asked, "run_view_type", VIEWS) or VIEWS[0]
    most, skip = fields.most(asked, 1000, MOST_AT_ONCE), page_tokens.start(asked)
    try:
        found = find(
            caller.workspace,
            experiments=experiment_ids(caller, fields.texts(asked, "experiment_ids")),
            text=fields.text(asked, "filter") or "",
            order_by=fields.texts(asked, "order_by"),
            view=view,
            most=most,
            skip=skip,
        )
    except FilterError as error:
        raise MlflowError(INVALID, f"Invalid {error.field}: {error}") from error
    told: dict[str, Any] = {"runs": run_json.runs(caller, found.runs)}
    return row_json.full(told | ({"next_page_token": page_tokens.token(skip + most)} if found.more else {}))


def experiment_ids(caller: Caller, asked: list[str]) -> list[int]:
    """Those of `asked` that may exist; what is another workspace's is not found there."""
    found = []
    for key in asked:
        if key == lookup.DEFAULT_ID:
            found.append(lookup.experiment(caller, key).pk or NO_ROW)
        elif key.isascii() and key.isdecimal() and len(key) <= 18:
            found.append(int(key))
        else:
            raise MlflowError(
                INVALID, f"Invalid experiment ID '{key[:100]}'. Experiment ID must be a valid integer."
            )
    return found


def _as_writable(caller: Caller, found: Run) -> Run:
    """Deleting (again) and restoring are for whoever may write; that it is deleted is no hindrance."""
    deleted_at, found.deleted_at = found.deleted_at, None
    lookup.permitted(caller, found)
    found.deleted_at = deleted_at
    return found


def _moment(asked: Asked, name: str) -> datetime | None:
    """Unix milliseconds as a moment; None where they are not given, or 0, as a client says that does not
    know."""
    value = fields.whole(asked, name)
    if not value:
        return None
    if not 0 < value <= LATEST_MS:
        raise fields.invalid(name, value, "It must be Unix milliseconds before the year 10000.")
    return datetime.fromtimestamp(value / 1000, UTC)


def _said(status: str, ended_at: datetime | None) -> dict[str, str]:
    told = {run_tags.STATUS: status} if status else {}
    return told | ({run_tags.END_TIME: ended_at.isoformat()} if ended_at else {})

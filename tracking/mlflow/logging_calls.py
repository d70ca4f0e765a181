"""MLflow calls that log metrics, params and tags. A request with metrics only is the hot path: it uses no
thread of its own, and no query while the run is cached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.db import transaction
from starlette.requests import Request
from starlette.responses import Response

from jobs.models import Run
from tracking import params
from tracking.callers import Caller
from tracking.metrics.point_writer import Point, append, append_soon
from tracking.mlflow import points, run_cache, run_tags
from tracking.mlflow.logged_models import model_metrics
from tracking.mlflow.points import ModelPoint
from tracking.mlflow.protocol import fields, key_rules
from tracking.mlflow.protocol.errors import INVALID, MlflowError
from tracking.mlflow.protocol.fields import CallArgs, JsonObject
from tracking.mlflow.protocol.http import json_body, json_response, mlflow_errors, require_caller
from workspaces.http.threads import in_thread
from workspaces.states import Role

# The limits of MLflow's server.
MAX_METRICS = 1000
MAX_PARAMS = MAX_TAGS = 100
MAX_ITEMS = 1000


@dataclass(frozen=True)
class LoggedData:
    """The validated content of one logging request."""

    points: Sequence[Point] = ()
    params: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    model_points: Sequence[ModelPoint] = ()

    @property
    def has_only_points(self) -> bool:
        return not self.params and not self.tags and not self.model_points


@mlflow_errors
async def log_metric(request: Request) -> Response:
    caller = await require_caller(request, Role.CONTRIBUTOR)
    args = await json_body(request)
    run = await run_cache.writable(caller, fields.run_id(args))
    point, tags = points.parse_metric(args)
    return await _save(
        caller, run, LoggedData([point], tags=tags, model_points=points.model_points([args], [point]))
    )


@mlflow_errors
async def log_batch(request: Request) -> Response:
    caller = await require_caller(request, Role.CONTRIBUTOR)
    args = await json_body(request)
    run = await run_cache.writable(caller, fields.run_id(args))
    return await _save(caller, run, parse_batch(args))


@mlflow_errors
async def log_parameter(request: Request) -> Response:
    caller = await require_caller(request, Role.CONTRIBUTOR)
    args = await json_body(request)
    run = await run_cache.writable(caller, fields.run_id(args))
    logged_params = {key_rules.key(args): key_rules.value(args, key_rules.MAX_PARAM_LENGTH)}
    return await _save(
        caller, run, LoggedData(params=logged_params, tags=key_rules.full_keys([args.get("key")]))
    )


@mlflow_errors
async def set_run_tag(request: Request) -> Response:
    caller = await require_caller(request, Role.CONTRIBUTOR)
    args = await json_body(request)
    run = await run_cache.writable(caller, fields.run_id(args))
    tags = {key_rules.key(args): key_rules.value(args, key_rules.MAX_TAG_LENGTH)}
    return await _save(caller, run, LoggedData(tags=tags | key_rules.full_keys([args.get("key")])))


def parse_batch(args: CallArgs) -> LoggedData:
    """Returns the validated content of a log-batch. Raises MlflowError for any wrong item, so nothing is
    stored."""
    metrics, tag_items = fields.items(args, "metrics"), fields.objects(args, "tags")
    param_items = fields.objects(args, "params")
    for name, limit, count in (
        ("metrics", MAX_METRICS, len(metrics)),
        ("params", MAX_PARAMS, len(param_items)),
        ("tags", MAX_TAGS, len(tag_items)),
        ("metrics, params, and tags", MAX_ITEMS, len(metrics) + len(param_items) + len(tag_items)),
    ):
        if count > limit:
            sentence = (
                f"A batch logging request can contain at most {limit} {name}. Got {count} {name}. "
                f"Please split up {name} across multiple requests and try again."
            )
            raise MlflowError(INVALID, sentence)
    parsed, tags = points.parse_metrics(metrics)
    tags |= key_rules.full_keys(item.get("key") for _, item in param_items)
    return LoggedData(
        parsed, _parse_params(param_items), parse_tags(tag_items) | tags, points.model_points(metrics, parsed)
    )


def parse_tags(
    items: Sequence[tuple[str, CallArgs]], max_length: int = key_rules.MAX_TAG_LENGTH
) -> dict[str, str]:
    """Returns tags by key (the last value of a repeated one), and the tags for the full keys of shortened
    ones."""
    tags = {
        key_rules.key(item, "key", f"{path}.key"): key_rules.value(item, max_length, f"{path}.value")
        for path, item in items
    }
    return tags | key_rules.full_keys(item.get("key") for _, item in items)


def _parse_params(items: Sequence[tuple[str, CallArgs]]) -> dict[str, str]:
    values: dict[str, str] = {}
    repeated: list[str] = []
    for path, item in items:
        key = key_rules.key(item, "key", f"{path}.key")
        if key in values:
            repeated.append(key)
        values[key] = key_rules.value(item, key_rules.MAX_PARAM_LENGTH, f"{path}.value")
    if repeated:
        sentence = (
            f"Duplicate parameter keys have been submitted: {repeated}. Please ensure the request contains "
            "only one param value "
            "per param key."
        )
        raise MlflowError(INVALID, sentence)
    return values


async def _save(caller: Caller, run: Run, data: LoggedData) -> Response:
    if data.has_only_points:
        await append_soon(run.pk, run.experiment_id, data.points)
    else:
        await in_thread(_store, caller, run, data)
    return json_response(None)


def _store(caller: Caller, run: Run, data: LoggedData) -> None:
    """Stores everything in one transaction."""
    try:
        with transaction.atomic():
            params.put(run.pk, run.experiment_id, data.params)
            run_tags.put_run_tags(caller, run, data.tags)
            model_metrics.put_model_metrics(caller, run, data.model_points)
            append(run.pk, run.experiment_id, data.points)
    except params.ParamsChanged as error:
        raise _changed_params_error(run, error, data) from error


def _changed_params_error(run: Run, error: params.ParamsChanged, data: LoggedData) -> MlflowError:
    if len(data.params) == 1:
        item = error.differences[0]
        sentence = (
            f"Changing param values is not allowed. Param with key='{item.key}' was already logged with "
            f"value='{item.before}' "
            f"for run ID='{run.pk}'. Attempted logging new value '{item.now}'."
        )
        return MlflowError(INVALID, sentence)
    changes: list[JsonObject] = [
        {"key": item.key, "old_value": item.before, "new_value": item.now} for item in error.differences
    ]
    return MlflowError(
        INVALID,
        f"Changing param values is not allowed. Params were already logged='{changes}' "
        f"for run ID='{run.pk}'.",
    )

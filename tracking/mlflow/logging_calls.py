"""What scripts log: metrics, params, tags. Metrics alone are the hot path: no thread of their own, no query
for a known run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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
from tracking.mlflow.protocol.http import Asked, answer, body, caller, door
from workspaces.http.threads import in_thread
from workspaces.states import Role

MOST_METRICS = 1000
MOST_PARAMS = MOST_TAGS = 100
MOST_IN_ALL = 1000


@dataclass(frozen=True)
class Told:
    """What one request says about a run."""

    points: Sequence[Point] = ()
    params: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    of_models: Sequence[ModelPoint] = ()

    @property
    def is_points_alone(self) -> bool:
        return not self.params and not self.tags and not self.of_models


@door
async def log_metric(request: Request) -> Response:
    who = await caller(request, Role.CONTRIBUTOR)
    asked = await body(request)
    run = await run_cache.writable(who, fields.run_id(asked))
    point, tags = points.one(asked)
    return await _take(who, run, Told([point], tags=tags, of_models=points.of_models([asked], [point])))


@door
async def log_batch(request: Request) -> Response:
    who = await caller(request, Role.CONTRIBUTOR)
    asked = await body(request)
    run = await run_cache.writable(who, fields.run_id(asked))
    return await _take(who, run, batch(asked))


@door
async def log_parameter(request: Request) -> Response:
    who = await caller(request, Role.CONTRIBUTOR)
    asked = await body(request)
    run = await run_cache.writable(who, fields.run_id(asked))
    params_told = {key_rules.key(asked): key_rules.value(asked, key_rules.LONGEST_PARAM)}
    return await _take(who, run, Told(params=params_told, tags=key_rules.full_keys([asked.get("key")])))


@door
async def set_tag(request: Request) -> Response:
    who = await caller(request, Role.CONTRIBUTOR)
    asked = await body(request)
    run = await run_cache.writable(who, fields.run_id(asked))
    tags = {key_rules.key(asked): key_rules.value(asked, key_rules.LONGEST_TAG)}
    return await _take(who, run, Told(tags=tags | key_rules.full_keys([asked.get("key")])))


def batch(asked: Asked) -> Told:
    """Everything of a log-batch, checked; nothing is stored where anything is wrong."""
    metrics, tagged = fields.several(asked, "metrics"), fields.objects(asked, "tags")
    configured = fields.objects(asked, "params")
    for name, limit, count in (
        ("metrics", MOST_METRICS, len(metrics)),
        ("params", MOST_PARAMS, len(configured)),
        ("tags", MOST_TAGS, len(tagged)),
        ("metrics, params, and tags", MOST_IN_ALL, len(metrics) + len(configured) + len(tagged)),
    ):
        if count > limit:
            sentence = (
                f"A batch logging request can contain at most {limit} {name}. Got {count} {name}. "
                f"Please split up {name} across multiple requests and try again."
            )
            raise MlflowError(INVALID, sentence)
    found, tags = points.of_batch(metrics)
    tags |= key_rules.full_keys(item.get("key") for _, item in configured)
    return Told(found, _params(configured), pairs(tagged) | tags, points.of_models(metrics, found))


def pairs(items: Sequence[tuple[str, Asked]], longest: int = key_rules.LONGEST_TAG) -> dict[str, str]:
    """Keys and values of tags; of a repeated key the last value. Tags with the whole names of those that are
    too long."""
    found = {
        key_rules.key(item, "key", f"{path}.key"): key_rules.value(item, longest, f"{path}.value")
        for path, item in items
    }
    return found | key_rules.full_keys(item.get("key") for _, item in items)


def _params(items: Sequence[tuple[str, Asked]]) -> dict[str, str]:
    found: dict[str, str] = {}
    twice: list[str] = []
    for path, item in items:
        key = key_rules.key(item, "key", f"{path}.key")
        if key in found:
            twice.append(key)
        found[key] = key_rules.value(item, key_rules.LONGEST_PARAM, f"{path}.value")
    if twice:
        sentence = (
            f"Duplicate parameter keys have been submitted: {twice}. Please ensure the request contains "
            "only one param value "
            "per param key."
        )
        raise MlflowError(INVALID, sentence)
    return found


async def _take(who: Caller, run: Run, told: Told) -> Response:
    if told.is_points_alone:
        await append_soon(run.pk, run.experiment_id, told.points)
    else:
        await in_thread(_store, who, run, told)
    return answer(None)


def _store(who: Caller, run: Run, told: Told) -> None:
    """All or none."""
    try:
        with transaction.atomic():
            params.put(run.pk, run.experiment_id, told.params)
            run_tags.put(who, run, told.tags)
            model_metrics.put(who, run, told.of_models)
            append(run.pk, run.experiment_id, told.points)
    except params.Changed as error:
        raise _changed(run, error, told) from error


def _changed(run: Run, error: params.Changed, told: Told) -> MlflowError:
    if len(told.params) == 1:
        item = error.differences[0]
        sentence = (
            f"Changing param values is not allowed. Param with key='{item.key}' was already logged with "
            f"value='{item.before}' "
            f"for run ID='{run.pk}'. Attempted logging new value '{item.now}'."
        )
        return MlflowError(INVALID, sentence)
    shown: list[dict[str, Any]] = [
        {"key": item.key, "old_value": item.before, "new_value": item.now} for item in error.differences
    ]
    return MlflowError(
        INVALID,
        f"Changing param values is not allowed. Params were already logged='{shown}' for run ID='{run.pk}'.",
    )

"""Keys and values that exist in a workspace, for columns and completion; the work is bounded for any number
of runs."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from cachetools import TTLCache, cached
from django.db import connection
from django.db.models import Model

from jobs.models import Experiment, Run, RunTag
from tracking.models import Metric, Param
from tracking.search import attributes
from tracking.search.tree import Key
from tracking.search.vocabulary import AttributeType, KeyKind
from workspaces import process_caches
from workspaces.models import User, Workspace

MODELS: dict[KeyKind, type[Model]] = {KeyKind.METRIC: Metric, KeyKind.PARAM: Param, KeyKind.TAG: RunTag}
# All keys of this many recent experiments are listed; of others only those of the latest runs.
MAX_EXPERIMENTS = 40
LATEST_RUNS = 300
MAX_KEYS = 500
MAX_VALUES = 30
CACHE_S = 10.0
MAX_CACHED_WORKSPACES = 1000


@dataclass(frozen=True)
class WorkspaceKeys:
    metrics: tuple[str, ...]
    params: tuple[str, ...]
    tags: tuple[str, ...]

    def of_kind(self, kind: KeyKind) -> tuple[str, ...]:
        return {KeyKind.METRIC: self.metrics, KeyKind.PARAM: self.params, KeyKind.TAG: self.tags}.get(
            kind, ()
        )


_lock = threading.Lock()
_cache: TTLCache[int, WorkspaceKeys] = TTLCache(MAX_CACHED_WORKSPACES, CACHE_S)


@cached(_cache, key=lambda workspace: workspace.pk, lock=_lock)
def workspace_keys(workspace: Workspace) -> WorkspaceKeys:
    """Returns the keys of the workspace; they are at most CACHE_S seconds old."""
    rows = Experiment.objects.filter(workspace=workspace, deleted_at=None).order_by("-updated_at", "-pk")
    experiments = list(rows.values_list("pk", flat=True)[:MAX_EXPERIMENTS])
    runs = list(
        Run.objects.for_workspace(workspace)
        .order_by("-created_at")
        .values_list("pk", flat=True)[:LATEST_RUNS]
    )
    return WorkspaceKeys(
        *(_keys(kind, experiments, runs) for kind in (KeyKind.METRIC, KeyKind.PARAM, KeyKind.TAG))
    )


@process_caches.register
def clear_cache() -> None:
    with _lock:
        _cache.clear()


def matching_values(workspace: Workspace, key: Key, prefix: str) -> list[str]:
    """Returns values of a param, tag or attribute that start with `prefix`."""
    if key.kind is KeyKind.ATTRIBUTE:
        return [
            text for text in _attribute_values(workspace, key.name) if text.lower().startswith(prefix.lower())
        ][:MAX_VALUES]
    if key.kind not in MODELS or key.kind is KeyKind.METRIC:
        return []
    experiments = Experiment.objects.filter(workspace=workspace, deleted_at=None).values_list("pk", flat=True)
    logged = MODELS[key.kind].objects  # type: ignore[attr-defined]
    rows = logged.filter(experiment__in=list(experiments), key=key.name)
    if prefix:
        # A range can be read along the index; by code points U+10FFFF is the last character.
        rows = rows.filter(short__gte=prefix, short__lt=prefix + "\U0010ffff")
    return list(rows.order_by().values_list("short", flat=True).distinct()[:MAX_VALUES])


def _attribute_values(workspace: Workspace, name: str) -> list[str]:
    if name == "state":
        return [*attributes.word_values("state"), *attributes.GROUPS]
    if key_type(name) is AttributeType.WORD:
        return [word for word in attributes.word_values(name) if word]
    if name == "experiment":
        rows = Experiment.objects.filter(workspace=workspace, deleted_at=None).order_by("name")
        return list(rows.values_list("name", flat=True)[:MAX_KEYS])
    if name == "user_id":
        return list(
            User.objects.filter(workspaces=workspace)
            .order_by("username")
            .values_list("username", flat=True)[:MAX_KEYS]
        )
    return []


def key_type(name: str) -> object:
    return Key(KeyKind.ATTRIBUTE, name).type


def _keys(kind: KeyKind, experiments: Sequence[int], runs: Sequence[str]) -> tuple[str, ...]:
    rows = MODELS[kind].objects.filter(run_id__in=runs).order_by()  # type: ignore[attr-defined]
    names = set(rows.values_list("key", flat=True).distinct()[:MAX_KEYS])
    for experiment in experiments:
        names.update(_distinct_keys(MODELS[kind], experiment))
        if len(names) > MAX_KEYS:
            break
    return tuple(sorted(names))


def _distinct_keys(model: type[Model], experiment: int) -> list[str]:
    """Returns the distinct keys by jumping from key to key along the index; DISTINCT would read the whole
    index."""
    table = connection.ops.quote_name(model._meta.db_table)
    smallest = f"SELECT MIN(key) AS key FROM {table} WHERE experiment_id = %s"  # noqa: S608 - a table of ours
    query = (
        # The names in it are those of our own tables.
        f"WITH RECURSIVE known(key) AS (SELECT * FROM ({smallest}) AS first UNION ALL "  # noqa: S608
        f"SELECT ({smallest} AND key > known.key) FROM known WHERE known.key IS NOT NULL) "
        "SELECT key FROM known WHERE key IS NOT NULL LIMIT %s"
    )
    with connection.cursor() as cursor:
        cursor.execute(query, [experiment, experiment, MAX_KEYS])
        return [key for (key,) in cursor.fetchall()]

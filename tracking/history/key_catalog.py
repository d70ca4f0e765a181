"""Which keys and values there are in a workspace, for columns and completion; bounded, however many runs
there are."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection
from django.db.models import Model

from jobs.models import Experiment, Run, RunTag
from tracking.models import Metric, Param
from tracking.search import attributes
from tracking.search.tree import Key
from tracking.search.vocabulary import Kind, Type
from workspaces import process_caches
from workspaces.models import User, Workspace

ROWS: dict[Kind, type[Model]] = {Kind.METRIC: Metric, Kind.PARAM: Param, Kind.TAG: RunTag}
EXPERIMENTS = 40
"""The latest; of these every key, of the others those of their latest runs."""
LATEST_RUNS = 300
MOST_KEYS = 500
MOST_VALUES = 30
REMEMBERED_S = 10.0
MOST_REMEMBERED = 1000


@dataclass(frozen=True)
class KnownKeys:
    metrics: tuple[str, ...]
    params: tuple[str, ...]
    tags: tuple[str, ...]

    def of(self, kind: Kind) -> tuple[str, ...]:
        return {Kind.METRIC: self.metrics, Kind.PARAM: self.params, Kind.TAG: self.tags}.get(kind, ())


_remembered: dict[int, tuple[float, KnownKeys]] = {}


def keys(workspace: Workspace) -> KnownKeys:
    """As they were a few seconds ago at most."""
    known = _remembered.get(workspace.pk)
    if known is not None and time.monotonic() - known[0] < REMEMBERED_S:
        return known[1]
    of = Experiment.objects.filter(workspace=workspace, deleted_at=None).order_by("-updated_at", "-pk")
    experiments = list(of.values_list("pk", flat=True)[:EXPERIMENTS])
    runs = list(Run.objects.of(workspace).order_by("-created_at").values_list("pk", flat=True)[:LATEST_RUNS])
    found = KnownKeys(*(_keys(kind, experiments, runs) for kind in (Kind.METRIC, Kind.PARAM, Kind.TAG)))
    if len(_remembered) > MOST_REMEMBERED:
        _remembered.clear()
    _remembered[workspace.pk] = time.monotonic(), found
    return found


@process_caches.register
def clear_cache() -> None:
    _remembered.clear()


def values(workspace: Workspace, key: Key, begins: str) -> list[str]:
    """Of a param, tag or attribute, those that begin so."""
    if key.kind is Kind.ATTRIBUTE:
        return [text for text in _attribute(workspace, key.name) if text.lower().startswith(begins.lower())][
            :MOST_VALUES
        ]
    if key.kind not in ROWS or key.kind is Kind.METRIC:
        return []
    experiments = Experiment.objects.filter(workspace=workspace, deleted_at=None).values_list("pk", flat=True)
    rows = ROWS[key.kind].objects.filter(experiment__in=list(experiments), key=key.name)  # type: ignore[attr-defined]
    if begins:
        rows = rows.filter(short__gte=begins, short__lt=begins + "\U0010ffff")
    return list(rows.order_by().values_list("short", flat=True).distinct()[:MOST_VALUES])


def _attribute(workspace: Workspace, name: str) -> list[str]:
    if name == "state":
        return [*attributes.word_values("state"), *attributes.GROUPS]
    if key_type(name) is Type.WORD:
        return [word for word in attributes.word_values(name) if word]
    if name == "experiment":
        of = Experiment.objects.filter(workspace=workspace, deleted_at=None).order_by("name")
        return list(of.values_list("name", flat=True)[:MOST_KEYS])
    if name == "user_id":
        return list(
            User.objects.filter(workspaces=workspace)
            .order_by("username")
            .values_list("username", flat=True)[:MOST_KEYS]
        )
    return []


def key_type(name: str) -> object:
    return Key(Kind.ATTRIBUTE, name).type


def _keys(kind: Kind, experiments: Sequence[int], runs: Sequence[str]) -> tuple[str, ...]:
    rows = ROWS[kind].objects.filter(run_id__in=runs).order_by()  # type: ignore[attr-defined]
    found = set(rows.values_list("key", flat=True).distinct()[:MOST_KEYS])
    for experiment in experiments:
        found.update(_leaping(ROWS[kind], experiment))
        if len(found) > MOST_KEYS:
            break
    return tuple(sorted(found))


def _leaping(model: type[Model], experiment: int) -> list[str]:
    """Each key once, from one to the next along the index; DISTINCT would read all of it."""
    table = connection.ops.quote_name(model._meta.db_table)
    least = f"SELECT MIN(key) AS key FROM {table} WHERE experiment_id = %s"  # noqa: S608 - a table of ours
    query = (
        f"WITH RECURSIVE known(key) AS (SELECT * FROM ({least}) AS first UNION ALL "  # noqa: S608 - a table of ours
        f"SELECT ({least} AND key > known.key) FROM known WHERE known.key IS NOT NULL) "
        "SELECT key FROM known WHERE key IS NOT NULL LIMIT %s"
    )
    with connection.cursor() as cursor:
        cursor.execute(query, [experiment, experiment, MOST_KEYS])
        return [key for (key,) in cursor.fetchall()]

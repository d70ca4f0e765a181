"""Fills the database of a hub with many finished runs: 8 metrics, 8 params and 4 tags each. Django must have
been set up."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection, models, transaction

from jobs.models import Experiment, Run, RunTag
from tracking.models import Metric, Param
from workspaces.models import User, Workspace

METRICS = ("acc", "loss", "val_acc", "val_loss", "lr_now", "grad_norm", "throughput", "epoch")
OPTIMIZERS = ("adam", "sgd", "adamw", "lion")
SEEDS = 5
AT_ONCE = 2_000
_NODE = {"environment": {f"VARIABLE_{number}": "x" * 40 for number in range(24)}}
PLAN_JSON = json.dumps({"version": 1, "nodes": [_NODE, _NODE]})


def fill(
    runs: int, workspace: Workspace, *, experiments: int = 1, user: User | None = None, seed: int = 7
) -> list[Experiment]:
    """Add `runs` of them, newest last, a minute apart; their experiments."""
    made = [
        Experiment.objects.get_or_create(workspace=workspace, name=f"bench-{n}")[0]
        for n in range(experiments)
    ]
    dice = random.Random(seed)
    first = workspace.last_run_number + 1
    begin = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=runs)
    for start in range(0, runs, AT_ONCE):
        numbers = range(first + start, first + min(start + AT_ONCE, runs))
        with transaction.atomic():
            _some(
                numbers,
                [made[n % experiments] for n in numbers],
                begin - timedelta(minutes=first),
                user,
                dice,
            )
    workspace.last_run_number += runs
    workspace.save(update_fields=["last_run_number"])
    return made


def analyze() -> None:
    """The statistics and maps that a database has after its first minutes; PostgreSQL's autovacuum does it by
    itself."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            for model in (Run, RunTag, Metric, Param):
                cursor.execute(f"VACUUM ANALYZE {model._meta.db_table}")


def analyze_tables() -> None:
    """The statistics alone, also within a transaction, on PostgreSQL."""
    with connection.cursor() as cursor:
        for model in (Run, RunTag, Metric, Param):
            cursor.execute(f"ANALYZE {model._meta.db_table}")


def _some(
    numbers: Sequence[int], of: Sequence[Experiment], zero: datetime, user: User | None, dice: random.Random
) -> None:
    ids = [uuid.UUID(int=dice.getrandbits(128)).hex for _ in numbers]
    whose = list(zip(ids, numbers, of, strict=True))
    _write(Run, [_run(*one, zero + timedelta(minutes=one[1]), user) for one in whose])
    _write(Metric, _each(_metrics(run, experiment.pk, dice) for run, _, experiment in whose))
    _write(Param, _each(_params(run, number, experiment.pk, dice) for run, number, experiment in whose))
    _write(RunTag, _each(_tags(run, number, experiment.pk) for run, number, experiment in whose))


def _run(run: str, number: int, experiment: Experiment, at: datetime, user: User | None) -> Run:
    spec = {
        "version": 1,
        "experiment": experiment.name,
        "display_name": f"train {number}",
        "script": "train.py",
        "source": {"type": "snapshot", "id": "0" * 64},
        "arguments": ["--epochs", "20"],
        "environment": {"name": "system", "version": "1"},
        "distribution": {
            "type": "pytorch",
            "communication_backend": "nccl",
            "process_count": 2,
            "node_count": 1,
        },
        "resources": {"cluster": "local", "node_count": None, "gpus_per_node": 2},
        "tags": {},
        "priority": 0,
    }
    failed = number % 10 == 0
    return Run(
        id=run,
        number=number,
        workspace_id=experiment.workspace_id,
        experiment=experiment,
        spec=spec,
        display_name=f"train {number}",
        preview=_Text(PLAN_JSON),
        state="Failed" if failed else "Completed",
        reason="exited" if failed else "completed",
        facts={"rank": 0, "code": 1, "node": "alpha"} if failed else {},
        attempt=1,
        created_by=user,
        created_at=at,
        started_at=at + timedelta(seconds=5),
        finished_at=at + timedelta(seconds=65 + number % 600),
        state_since=at,
    )


def _metrics(run: str, experiment: int, dice: random.Random) -> Iterator[Metric]:
    for key in METRICS:
        value = dice.random()
        yield Metric(
            run_id=run,
            experiment_id=experiment,
            key=key,
            count=100,
            last_value=value,
            last_step=99,
            last_ms=0,
            min_value=value / 2,
            max_value=value,
        )


def _params(run: str, number: int, experiment: int, dice: random.Random) -> Iterator[Param]:
    chosen = {
        "opt": dice.choice(OPTIMIZERS),
        "lr": f"{dice.choice((1, 3)) * 10 ** -dice.randint(1, 5):g}",
        "seed": str(number % SEEDS),
        "batch_size": str(2 ** dice.randint(4, 9)),
        "depth": str(dice.randint(2, 50)),
        "dropout": f"{dice.random():.2f}",
        "data": f"/data/set-{dice.randint(0, 9)}",
        "note": f"run of the {number}th kind",
    }
    for key, value in chosen.items():
        figure = float(value) if value[0].isdigit() else None
        yield Param(run_id=run, experiment_id=experiment, key=key, value=value, short=value, number=figure)


def _tags(run: str, number: int, experiment: int) -> Iterator[RunTag]:
    team = "vision" if number % 3 else "speech"
    for key, value in {"team": team, "mlflow.user": "bench", "week": str(number % 52), "v": "1"}.items():
        yield RunTag(run_id=run, experiment_id=experiment, key=key, value=value, short=value)


class _Text(str):
    """JSON that is written already."""


def _each(rows: Iterable[Iterable[models.Model]]) -> list[models.Model]:
    return [row for some in rows for row in some]


def _write(model: type[models.Model], rows: Sequence[models.Model]) -> None:
    """As bulk_create would, without what that costs."""
    fields = [
        field for field in model._meta.concrete_fields if not field.get_internal_type().endswith("AutoField")
    ]
    names = ", ".join(f'"{field.column}"' for field in fields)
    values = [tuple(_stored(field, getattr(row, field.attname)) for field in fields) for row in rows]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f'COPY "{model._meta.db_table}" ({names}) FROM STDIN') as copy:
                for value in values:
                    copy.write_row(value)
        else:
            marks = ", ".join(["%s"] * len(fields))
            cursor.executemany(f'INSERT INTO "{model._meta.db_table}" ({names}) VALUES ({marks})', values)


def _stored(field: models.Field[Any, Any], value: Any) -> Any:
    if isinstance(field, models.JSONField):
        return None if value is None else str(value) if isinstance(value, _Text) else json.dumps(value)
    if isinstance(value, datetime) and connection.vendor == "sqlite":
        return value.replace(tzinfo=None).isoformat(" ")
    return value

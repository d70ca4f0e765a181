"""Run by an interpreter with MLflow: fills the database of an MLflow server (its own schema) with runs like
those of bench.support.run_filler, or with one long curve. python -m bench.support.mlflow_filler DATABASE_URL
{runs N | curve N}"""

from __future__ import annotations

import random
import sys
import uuid
from typing import Any

import sqlalchemy
from mlflow.store.tracking.dbmodels.models import (
    SqlExperiment,
    SqlLatestMetric,
    SqlMetric,
    SqlParam,
    SqlRun,
    SqlTag,
)

METRICS = ("acc", "loss", "val_acc", "val_loss", "lr_now", "grad_norm", "throughput", "epoch")
OPTIMIZERS = ("adam", "sgd", "adamw", "lion")
AT_ONCE = 2000
FIRST_MS = 1_700_000_000_000


def insert(connection: Any, table: Any, rows: list[dict[str, Any]]) -> None:
    for first in range(0, len(rows), AT_ONCE):
        connection.execute(table.__table__.insert(), rows[first : first + AT_ONCE])


def experiment(connection: Any, name: str) -> int:
    fields = {
        "name": name,
        "artifact_location": f"mlflow-artifacts:/{name}",
        "lifecycle_stage": "active",
        "creation_time": 1,
        "last_update_time": 1,
    }
    query = sqlalchemy.select(SqlExperiment.__table__.c.experiment_id).where(
        SqlExperiment.__table__.c.name == name
    )
    if connection.execute(query).scalar_one_or_none() is None:
        connection.execute(SqlExperiment.__table__.insert(), [fields])
    return int(connection.execute(query).scalar_one())


def run_row(run: str, number: int, experiment_id: int) -> dict[str, Any]:
    return {
        "run_uuid": run,
        "name": f"run {number}",
        "source_type": "UNKNOWN",
        "source_name": "",
        "entry_point_name": "",
        "user_id": "olivia",
        "status": "FINISHED",
        "start_time": FIRST_MS + number * 1000,
        "end_time": FIRST_MS + 500_000 + number * 1000,
        "source_version": "",
        "lifecycle_stage": "active",
        "artifact_uri": f"mlflow-artifacts:/{experiment_id}/{run}/artifacts",
        "experiment_id": experiment_id,
    }


def runs(connection: Any, count: int) -> None:
    chance, experiment_id = random.Random(7), experiment(connection, "bench-0")
    tables: dict[Any, list[dict[str, Any]]] = {
        SqlRun: [],
        SqlParam: [],
        SqlTag: [],
        SqlMetric: [],
        SqlLatestMetric: [],
    }
    for number in range(count):
        run = uuid.uuid4().hex
        tables[SqlRun].append(run_row(run, number, experiment_id))
        values = {"opt": chance.choice(OPTIMIZERS), "lr": f"{10 ** chance.uniform(-5, -1):.2g}"}
        values |= {f"p{place}": str(chance.randint(0, 99)) for place in range(6)}
        tables[SqlParam] += [{"run_uuid": run, "key": key, "value": value} for key, value in values.items()]
        tables[SqlTag] += [
            {"run_uuid": run, "key": f"t{place}", "value": str(chance.randint(0, 9))} for place in range(4)
        ]
        for key in METRICS:
            point = {
                "run_uuid": run,
                "key": key,
                "value": chance.random(),
                "timestamp": 1,
                "step": 9,
                "is_nan": False,
            }
            tables[SqlMetric].append(point)
            tables[SqlLatestMetric].append(point)
        if len(tables[SqlRun]) == AT_ONCE or number == count - 1:
            for table, rows in tables.items():
                insert(connection, table, rows)
                rows.clear()


def curve(connection: Any, count: int) -> None:
    run, experiment_id = uuid.uuid4().hex, experiment(connection, f"curve-{count}")
    insert(connection, SqlRun, [run_row(run, 1, experiment_id)])
    chance = random.Random(7)
    points = [
        {
            "run_uuid": run,
            "key": "loss",
            "value": chance.random(),
            "timestamp": FIRST_MS + step,
            "step": step,
            "is_nan": False,
        }
        for step in range(count)
    ]
    insert(connection, SqlMetric, points)
    insert(connection, SqlLatestMetric, points[-1:])
    print(run)


if __name__ == "__main__":
    with sqlalchemy.create_engine(sys.argv[1]).begin() as opened:
        {"runs": runs, "curve": curve}[sys.argv[2]](opened, int(sys.argv[3]))

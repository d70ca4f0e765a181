"""Runs that a client logs over HTTP, and their names in the table of a browser."""

from __future__ import annotations

import time
from typing import Any

import httpx

MLFLOW = "/api/2.0/mlflow"


def asked(client: httpx.Client, call: str, **body: Any) -> dict[str, Any]:
    return dict(client.post(f"{MLFLOW}/{call}", json=body).raise_for_status().json())


def log(
    client: httpx.Client, experiment: str, name: str, metrics: dict[str, float], params: dict[str, str]
) -> str:
    run = asked(client, "runs/create", experiment_id=experiment, run_name=name)["run"]["info"]["run_id"]
    now = int(time.time() * 1000)
    points = [{"key": key, "value": value, "step": 0, "timestamp": now} for key, value in metrics.items()]
    asked(
        client,
        "runs/log-batch",
        run_id=run,
        metrics=points,
        params=[{"key": k, "value": v} for k, v in params.items()],
    )
    asked(client, "runs/update", run_id=run, status="FINISHED", end_time=now)
    return str(run)


def names(page: Any) -> list[str]:
    return [str(text) for text in page.locator("#run-rows tbody .th-name-line > a").all_inner_texts()]

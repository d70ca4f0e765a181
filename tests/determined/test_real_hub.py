"""Experiments of the Core API against a whole hub: their curves, a search, and a training that fails and goes
on from its checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.determined.curves import curve
from tests.hub import Hub
from trainhub_sdk.client import Client

pytestmark = pytest.mark.slow
TRAIN = """
import os
import determined as det

assert not os.path.exists("large.csv"), "the ignore file does not count"

def main(core, info):
    rate, x, first = info.trial.hparams["rate"], 0, 0
    if info.latest_checkpoint is not None:
        with core.checkpoint.restore_path(info.latest_checkpoint) as path:
            x, first = map(int, (path / "state").read_text().split())
        print("goes on after", first, "of trial", info.trial.trial_id)
    for step in range(first + 1, 7):
        x += rate
        core.train.report_training_metrics(steps_completed=step, metrics={"x": x})
        with core.checkpoint.store_path({"steps_completed": step}) as (path, _checkpoint):
            (path / "state").write_text(f"{x} {step}")
        if info.user_data.get("fails") and info.latest_checkpoint is None and step == 3:
            core.close()
            raise SystemExit(1)
        if core.preempt.should_preempt():
            return
    core.train.report_validation_metrics(steps_completed=step, metrics={"x": x})

with det.core.init() as core:
    main(core, det.get_cluster_info())
"""
CONFIG = """
name: birds
entrypoint: python3 train.py
resources: {slots_per_trial: 0}
searcher: {name: single, metric: x}
max_restarts: 1
"""


def test_experiments_of_the_core_api_run_unchanged(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / ".detignore").write_text("*.csv\n")
    (tmp_path / "large.csv").write_text("1,2\n")
    (tmp_path / "const.yaml").write_text(f"{CONFIG}hyperparameters: {{rate: 2}}\n")
    (tmp_path / "fails.yaml").write_text(f"{CONFIG}hyperparameters: {{rate: 1}}\ndata: {{fails: true}}\n")
    space = "hyperparameters: {rate: {type: int, minval: 1, maxval: 3, count: 3}}\n"
    search = CONFIG.replace("single", "grid, max_concurrent_trials: 2")
    (tmp_path / "grid.yaml").write_text(search + space)
    client = Client(hub.url, hub.owner_token())
    runs = [
        run
        for name in ("const", "fails", "grid")
        for run in client.specs.from_determined(tmp_path / f"{name}.yaml").submit(client)
    ]
    for run in runs:
        run.wait(120)
    once, again, *grid = runs
    assert curve(once, "training/x") == [(step, 2.0 * step) for step in range(1, 7)]
    assert curve(once, "validation/x") == [(6, 12.0)]

    assert curve(again, "training/x") == [(step, float(step)) for step in range(1, 7)]
    assert "goes on after 3" in "".join(again.logs())

    assert [run.metrics()["validation/x"]["last"] for run in grid] == [6.0, 12.0, 18.0]
    assert [run.tags["determined.trial"] for run in grid] == ["1", "2", "3"]
    assert len({run.tags["determined.sweep"] for run in grid}) == 1
    client.close()

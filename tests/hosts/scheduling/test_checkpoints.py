"""A run whose node is lost goes on elsewhere from its newest checkpoint, also from one whose parts lay on
several nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.examples.table import TWO_HOSTS
from tests.hosts.bench import CLUSTER, Hosts
from tests.hub import eventually
from tests.journeys.runs import Runs, example_spec

pytestmark = [pytest.mark.hosts, pytest.mark.frameworks, pytest.mark.slow]
EPOCHS = 15
# Each rank trains a part of a tensor, which only its own node saves; the attempt fails after it has saved.
SHARDED = """
import os, pathlib, sys, torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
dist.init_process_group('gloo')
mesh = init_device_mesh('cpu', (dist.get_world_size(),))
weights = distribute_tensor(torch.zeros(8), mesh, [Shard(0)])
folder = pathlib.Path(os.environ['TRAINHUB_CHECKPOINT_DIR'])
there = sorted(path.name for path in folder.iterdir())
if there:
    dcp.load({'weights': weights}, checkpoint_id=folder / there[-1])
    print('loaded', there, weights.to_local().tolist(), flush=True)
    sys.exit(0)
weights.to_local().fill_(dist.get_rank() + 1)
dcp.save({'weights': weights}, checkpoint_id=folder / 'step-1')
print('saved', sorted(path.name for path in (folder / 'step-1').iterdir()), flush=True)
dist.barrier()
sys.exit(1)
"""


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory, frameworks_python: str) -> Iterator[Hosts]:
    """Of this module's own: with little patience, and one of them crashes."""
    settings = {"NODE_UNREACHABLE_AFTER": "3", "NODE_LOST_AFTER": "10"}
    built = Hosts(tmp_path_factory.mktemp("checkpoints"), frameworks_python, settings=settings)
    try:
        yield built.start()
    finally:
        built.stop()


def checkpoints(runs: Runs, run: str, state: str = "complete") -> list[dict[str, Any]]:
    return [row for row in runs.get(f"/runs/{run}/checkpoints/") if row["state"] == state]


def steps(runs: Runs, run: str, metric: str) -> set[int]:
    answer = runs.client.get(
        "/api/2.0/mlflow/metrics/get-history",
        params={"run_id": run, "metric_key": metric, "max_results": 1000},
    )
    assert answer.status_code == httpx.codes.OK, answer.text
    return {point["step"] for point in answer.json().get("metrics", ())}


# tests/hosts/data/test_checkpoints.py writes parts on both hosts, too.
@pytest.mark.long
def test_shards_of_both_hosts_are_one_checkpoint(hosts: Hosts) -> None:
    distribution = {"type": "pytorch", "communication_backend": "gloo", "process_count": 2, "node_count": 2}
    run = hosts.script(SHARDED, distribution=distribution, limits={"retries": 1})
    ended = hosts.runs.ended(run, 180)
    logs = [hosts.runs.log(run, f"70_driver_log_{rank}.txt").decode() for rank in range(2)]
    assert ended["state"] == "Completed", (ended["sentence"], logs)
    assert "loaded ['step-1'] [1.0, 1.0, 1.0, 1.0]" in logs[0]
    assert "loaded ['step-1'] [2.0, 2.0, 2.0, 2.0]" in logs[1]
    assert [(row["sign"], row["files"]) for row in checkpoints(hosts.runs, run)] == [("metadata", 3)]


@pytest.mark.long
def test_shards_of_deepspeed_are_resumed(hosts: Hosts) -> None:
    training = next(item for item in TWO_HOSTS if item.example == "deepspeed-digits")
    spec = training.spec(CLUSTER)
    run = hosts.runs.submit(spec | {"arguments": ["--epochs", "1000"]})
    eventually(lambda: checkpoints(hosts.runs, run), 300, "a checkpoint is complete")
    hosts.runs.client.post(f"/api/v1/runs/{run}/cancel/")
    assert hosts.runs.ended(run, 60)["state"] == "Canceled"
    newest = checkpoints(hosts.runs, run)[-1]
    # The model and a part of the optimizer's state on one host, another part on the other, and what names it.
    assert newest["sign"] == "latest"
    assert newest["files"] >= 4
    epochs = int(newest["name"].removeprefix("epoch-"))
    changes = {"arguments": ["--epochs", str(epochs + 2)], "checkpoint": {"resume_from": run}}
    resumed = hosts.runs.submit(spec | changes)
    ended = hosts.runs.ended(resumed, 300)
    logs = {name: hosts.runs.log(resumed, name).decode(errors="replace") for name in training.logs}
    assert ended["state"] == "Completed", (ended["sentence"], logs)
    for rank, (name, words) in enumerate(training.logs.items()):
        expected = (*words, f"rank {rank} goes on after epoch {epochs}", f"epoch {epochs + 1}/{epochs + 2}")
        assert [word for word in expected if word not in logs[name]] == [], logs[name]
    assert any(path.endswith(training.output) for path in hosts.runs.outputs(resumed))


def test_a_run_whose_host_crashes_ends_on_the_other_one(hosts: Hosts) -> None:
    spec = example_spec("digits-ddp") | {
        "arguments": ["--epochs", str(EPOCHS)],
        "environment": {"name": "system", "version": ""},
        "resources": {"cluster": CLUSTER},
        "limits": {"retries": 1},
    }
    run = hosts.runs.submit(spec)
    eventually(lambda: len(steps(hosts.runs, run, "loss")) >= 3 and checkpoints(hosts.runs, run), 180)
    first = hosts.runs.detail(run)["members"][0]["node"]
    next(host for host in hosts.hosts if host.name == first).crash()
    ended = hosts.runs.ended(run, 180)
    log = hosts.runs.log(run, "70_driver_log_0.txt").decode(errors="replace")
    assert ended["state"] == "Completed", (ended["sentence"], log)
    assert {member["node"] for member in ended["members"]} == {host.name for host in hosts.hosts} - {first}
    assert "goes on after epoch" in log
    assert steps(hosts.runs, run, "loss") == set(range(1, EPOCHS + 1))

"""Examples train in the curated environments that a node builds with pip, and leave a model.

tests/examples/test_every_curated.py trains in all curated environments (`make test-curated`), and
tests/examples/test_training.py and tests/hosts/test_frameworks.py train every example in an environment that
is there already.
"""

from __future__ import annotations

import pytest

from tests.journeys.runs import ENVIRONMENT_BUILD_S, Runs, example_spec

pytestmark = pytest.mark.slow


def trains(runs: Runs, name: str, logs: list[str]) -> None:
    run = runs.submit(example_spec(name))
    ended = runs.ended(run, ENVIRONMENT_BUILD_S)
    told = {log: runs.log(run, log).decode(errors="replace") for log in runs.logs(run)}
    assert ended["state"] == "Completed", (ended["sentence"], told)
    assert [log for log in runs.logs(run) if log.startswith("70_")] == logs
    assert all(told[log].strip() for log in logs), told
    assert any("model" in path for path in runs.outputs(run)), runs.outputs(run)


@pytest.mark.long
@pytest.mark.frameworks
def test_two_pytorch_processes(runs: Runs) -> None:
    trains(runs, "digits-ddp", ["70_driver_log_0.txt", "70_driver_log_1.txt"])


@pytest.mark.mpi
@pytest.mark.frameworks
def test_four_mpi_processes(runs: Runs) -> None:
    trains(runs, "mpi-digits", [f"70_driver_log_{rank}.txt" for rank in range(4)])


@pytest.mark.long
@pytest.mark.frameworks
def test_good_ddp_runs_are_never_shown_as_failed(runs: Runs) -> None:
    """gloo aborts now and then at interpreter exit; runs without destroy_process_group would show it."""
    script = (
        "import torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "for _ in range(10):\n    dist.all_reduce(torch.ones(4))\n"
        "print('reduced', flush=True)\n"
    )
    distribution = {"type": "pytorch", "communication_backend": "gloo", "process_count": 2, "node_count": 1}
    environment = {"name": "TrainHub-PyTorch-2.13"}
    for _ in range(3):
        run = runs.script(script, distribution=distribution, environment=environment)
        ended = runs.ended(run, ENVIRONMENT_BUILD_S)
        assert ended["state"] == "Completed", ended["sentence"]

"""Every curated environment is locked, made and trained with on this machine: GBs to download and up to half
an hour to compile, so `make test-curated` alone runs it.

`make test` trains in those that are small or already there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from environments.curated import CURATED
from tests.examples.checks import check_trained
from tests.examples.table import ALONE, QUICK, WORKERS, Training, ranks
from tests.hub import Hub
from tests.journeys.runs import Runs
from trainhub_launch.order import EnvironmentSpec

pytestmark = [pytest.mark.slow, pytest.mark.mpi]
# Downloads of GBs, and the compilation of Horovod on few processors.
PATIENCE_S = 3600
DIGITS = Training("digits-single", {ALONE: ("epoch  2/2",)}, "model.pt", {"arguments": QUICK})
DDP = Training("digits-ddp", ranks(2, "rank {rank} of 2 on"), "model.pt", {"arguments": QUICK})
TENSORFLOW = Training("tf-multiworker", WORKERS, "model.keras", {"arguments": QUICK})
# By the beginning of the name; the first that fits.
TRAININGS = {
    "TrainHub-PyTorch-": DDP,
    "TrainHub-ONNX-": DIGITS,
    "TrainHub-TensorFlow-": TENSORFLOW,
    "TrainHub-Lightning-": Training(
        "lightning-digits",
        {ALONE: ("rank 0 of 2 on", "rank 1 of 2 on", "epoch 2/2")},
        "model.ckpt",
        {"arguments": ["--max_epochs", "2", "--devices", "2", "--num_nodes", "1"]},
    ),
    "TrainHub-DeepSpeed-": Training(
        "deepspeed-digits", ranks(2, "rank {rank} of 2, {rank} on its node"), "model.pt", {"arguments": QUICK}
    ),
    "TrainHub-Transformers-": Training(
        "transformers-tiny",
        ranks(2, "rank {rank} of 2 on"),
        "model/model.safetensors",
        {
            "arguments": [
                *("--output_dir", "outputs/model", "--num_train_epochs", "1"),
                *("--local_rank", "$LOCAL_RANK"),
            ]
        },
    ),
    "TrainHub-Horovod-TensorFlow-": Training(
        "horovod-tensorflow",
        ranks(2, "rank {rank} of 2, {rank} on its node"),
        "model.keras",
        {"arguments": QUICK},
    ),
    "TrainHub-Horovod-": Training(
        "horovod-digits", ranks(2, "rank {rank} of 2, {rank} on its node"), "model.pt", {"arguments": QUICK}
    ),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Runs of a hub whose node has a plain Python."""
    hub = Hub(tmp_path_factory.mktemp("curated") / "data")
    try:
        yield Runs(hub.start())
        hub.cancel_all()
    finally:
        hub.stop()


def training_in(environment: EnvironmentSpec) -> Training:
    return next(training for start, training in TRAININGS.items() if environment.name.startswith(start))


@pytest.mark.parametrize("environment", CURATED, ids=lambda environment: environment.name)
def test_is_made_and_trained_with(runs: Runs, environment: EnvironmentSpec) -> None:
    training = training_in(environment)
    spec = training.curated_spec() | {
        "environment": {"name": environment.name, "version": environment.version}
    }
    run = runs.submit(spec)
    check_trained(runs, run, training, PATIENCE_S)
    version = runs.get(f"/environments/{environment.name}/versions/{environment.version}/")
    installed = {package["name"] for package in runs.get(f"/runs/{run}/packages/")["nodes"][0]["packages"]}
    names = {line.partition("==")[0].partition("[")[0] for line in environment.requirements}
    assert version["state"] == "locked"
    assert names <= installed

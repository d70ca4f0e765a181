"""The frameworks train on two hosts: right world size, each rank's log apart and whole, their metrics and
checkpoints in the run, a model in the end."""

from __future__ import annotations

import pytest

from tests.examples.checks import check_tracked, check_trained
from tests.examples.table import TWO_HOSTS, Training
from tests.hosts.bench import CLUSTER, Hosts
from tests.journeys.runs import sha256

pytestmark = [pytest.mark.hosts, pytest.mark.frameworks, pytest.mark.mpi, pytest.mark.slow]
TRAINING_S = 240
ELSEWHERE = {
    # Would be compiled for many minutes: tests/examples/test_every_curated.py does that.
    "horovod-digits",
    "horovod-tensorflow",
    # digits-torchrun starts in the same way, and transformers-tiny trains the same.
    "transformers-torchrun",
    # The older name of torchrun.
    "digits-launch",
    # tests/hosts/scheduling/test_checkpoints.py trains it, and resumes it.
    "deepspeed-digits",
    # tests/mlflow/test_frameworks.py trains it.
    "tf-keras-fit",
}
# These start as digits-torchrun or tf-multiworker do, or are trained by scheduling/test_checkpoints.py.
LONG = {"digits-ddp", "lightning-digits", "transformers-tiny", "tf-parameter-server"}
TRAININGS = [
    pytest.param(training, marks=pytest.mark.long if training.example in LONG else ())
    for training in TWO_HOSTS
    if training.example not in ELSEWHERE
]


@pytest.mark.parametrize("training", TRAININGS, ids=lambda training: training.example)
def test_trains(hosts: Hosts, training: Training) -> None:
    run = hosts.runs.submit(training.spec(CLUSTER))
    check_trained(hosts.runs, run, training, TRAINING_S)
    members = hosts.runs.detail(run)["members"]
    assert {member["node"] for member in members} == {host.name for host in hosts.hosts}
    for name in training.logs:
        assert sha256(hosts.runs.log(run, name)) == sha256(hosts.file_on_host(run, name).read_bytes())
    check_tracked(hosts.runs, run, training)

"""All experiments of the public repository of Determined: each becomes specs, or is refused with its line;
and three of its tutorials train on a whole hub.

The files are not ours and not here, so `make test` leaves these tests out. TRAINHUB_DETERMINED names a
checkout of the commit in `corpus.txt`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.determined.curves import curve
from tests.hub import Hub, eventually
from trainhub_launch.spec_reader import read_spec
from trainhub_sdk.client import Client
from trainhub_sdk.determined.config import ERROR
from trainhub_sdk.determined.experiment import read_experiment
from trainhub_sdk.errors import ConfigRefused

CHECKOUT = os.environ["TRAINHUB_DETERMINED"]
LIST = Path(__file__).parent / "corpus.txt"
TUTORIALS = Path(CHECKOUT, "examples/tutorials/core_api")


def outcome(path: Path) -> str:
    """`runs N`, or `line N` of the field that has to be changed."""
    try:
        imported = read_experiment(path, gpus_per_node=8)
    except ConfigRefused as refused:
        return f"line {next(finding.line for finding in refused.findings if finding.severity == ERROR)}"
    for spec in imported.specs:
        read_spec({**spec, "source": {"type": "snapshot", "id": "a" * 64}})
    return f"runs {len(imported.specs)}"


def test_each_experiment_becomes_specs_or_is_refused_with_its_line() -> None:
    rows = [line.split(maxsplit=2) for line in LIST.read_text().splitlines() if not line.startswith("#")]
    expected = {path: f"{kind} {number}" for kind, number, path in rows}
    outcomes = {path: outcome(Path(CHECKOUT, path)) for path in expected}
    share = sum(text.startswith("runs") for text in outcomes.values()) / len(outcomes)
    print(f"{share:.0%} of {len(outcomes)} experiments become specs")  # noqa: T201
    assert outcomes == expected


@pytest.mark.slow
def test_the_tutorials_of_the_core_api_train_as_they_are(hub: Hub) -> None:
    client = Client(hub.url, hub.owner_token())
    (metrics,) = client.specs.from_determined(TUTORIALS / "1_metrics.yaml").submit(client)
    checkpoints = client.specs.from_determined(TUTORIALS / "2_checkpoints.yaml")
    (stored,) = checkpoints.submit(client)
    search = client.specs.from_determined(TUTORIALS / "3_hpsearch.yaml").submit(client)
    for run in (metrics, stored):
        run.wait(120)
        assert curve(run, "training/x") == [(step, float(step)) for step in range(10, 101, 10)]
        assert curve(run, "validation/x") == [(100, 100.0)]

    # Only the checkpoint of step 100 has a digit more. It may arrive after the end of the run.
    eventually(
        lambda: len({row.size_bytes for row in stored.checkpoints() if row.state == "complete"}) == 2, 60
    )
    resumed = client.specs.from_determined(TUTORIALS / "2_checkpoints.yaml")
    resumed.spec["checkpoint"] = {"resume_from": stored.id}
    (again,) = resumed.submit(client)
    again.wait(120)
    # Another trial keeps the weight, and counts its batches anew.
    assert curve(again, "training/x") == [(step, 100.0 + step) for step in range(10, 101, 10)]

    assert len(search) == 10
    for run in search:
        run.wait(240)
        rate = int(run.spec["environment_variables"]["DET_HPARAMS"].rpartition(" ")[2].strip("}"))
        assert curve(run, "validation/x")[-1] == (100, 100.0 * rate)
    client.close()

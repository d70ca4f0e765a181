"""What a process of a job logs reaches its run; nothing that the hub does ends the training."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.azureml.stub_hub import RUN, StubHub
from trainhub_azureml import run as run_module
from trainhub_azureml.exceptions import UserErrorException
from trainhub_azureml.run import Run
from trainhub_sdk.job import sender
from trainhub_sdk.job.metric_names import metric_key
from trainhub_sdk.job.process_rank import process_rank


class Scalar:
    """Like a tensor of one element, or one of several."""

    def __init__(self, *values: float) -> None:
        self.values = values

    def item(self) -> float:
        if len(self.values) != 1:
            raise ValueError("several elements")
        return self.values[0]

    def tolist(self) -> Any:
        return list(self.values)


class Figure:
    def savefig(self, buffer: Any, format: str) -> None:
        buffer.write(b"\x89PNG")


@pytest.fixture
def job(stub_hub: StubHub, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """The run of this process."""
    monkeypatch.setenv("TRAINHUB_RUN_ID", RUN)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "birds")
    monkeypatch.setattr(run_module, "_context", {})
    yield Run.get_context()
    stub_hub.refuse = 0
    run_module._context.clear()


class TestValues:
    def test_numbers_become_points_with_steps_that_count(self, job: Run, stub_hub: StubHub) -> None:
        for value in (1, 0.5, True, Scalar(0.25)):
            job.log("loss", value)
        job.log("loss", 0.1, step=9)
        job.log("loss", 0.05)
        job.flush()
        steps = [(0, 1.0), (1, 0.5), (2, 1.0), (3, 0.25), (9, 0.1), (10, 0.05)]
        assert stub_hub.metrics == [("loss", value, step) for step, value in steps]

    def test_what_is_no_number_is_text(self, job: Run, stub_hub: StubHub) -> None:
        job.log("Category", "Red")
        job.log("Category", None)
        job.log("shape", [1, 2])
        job.flush()
        assert stub_hub.metrics == []
        assert stub_hub.tags["azureml.text/Category"] == "None"
        assert job.get_metrics() == {"Category": ["Red", "None"], "shape": "[1, 2]"}

    def test_infinities_are_spelled(self, job: Run, stub_hub: StubHub) -> None:
        for value in (float("nan"), float("inf"), float("-inf")):
            job.log("x", value)
        job.flush()
        assert [value for _, value, _ in stub_hub.metrics] == ["NaN", "Infinity", "-Infinity"]

    def test_any_name_can_be_logged_and_comes_back(self, job: Run, stub_hub: StubHub) -> None:
        names = ["a=b%", "top/../../x", "/abs", ".", "", "x" * 500, "ä b:c", "loss(val)"]
        for name in names:
            job.log(name, 1.0)
        job.flush()
        assert set(job.get_metrics()) == set(names)
        assert len({metric_key(name) for name in names}) == len(names)

    def test_shapes_of_get_metrics(self, job: Run, stub_hub: StubHub) -> None:
        job.log("once", 3)
        job.log_list("one", [5])
        job.log_list("many", Scalar(1, 2, 3))
        job.log_list("generated", (value * 2 for value in range(3)))
        for epoch in range(2):
            job.log_row("rows", epoch=epoch, note=f"n{epoch}")
        job.log_table("table", {"x": [1, 2, 3], "y": 4})
        job.log_image("plot", plot=Figure())
        metrics = job.get_metrics()
        assert metrics.pop("plot").startswith("azureml/images/plot_")
        assert metrics == {
            "once": 3.0,
            "one": [5.0],
            "many": [1.0, 2.0, 3.0],
            "generated": [0.0, 2.0, 4.0],
            "rows": {"epoch": [0, 1], "note": ["n0", "n1"]},
            "table": {"x": [1, 2, 3], "y": [4, None, None]},
        }
        assert job.get_metrics(name="once") == {"once": 3.0}
        assert ("rows/epoch", 1.0, 1) in stub_hub.metrics

    def test_a_batch_that_came_twice_counts_once(self, job: Run, stub_hub: StubHub) -> None:
        job.log("x", 1)
        job.log("x", 2)
        job.flush()
        stub_hub.batches *= 2
        assert job.get_metrics() == {"x": [1.0, 2.0]}

    def test_other_ranks_log_under_names_of_their_own(
        self, job: Run, stub_hub: StubHub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "2")
        job.log("loss", 1)
        job.log("loss", 2)
        job.flush()
        assert [key for key, _, _ in stub_hub.metrics] == ["rank_2/loss"] * 2
        assert capsys.readouterr().err.count("rank_2/NAME") == 1

    @pytest.mark.parametrize(
        ("variables", "rank"),
        [
            ({}, 0),
            ({"RANK": "3"}, 3),
            ({"TF_CONFIG": '{"task": {"type": "worker", "index": 1}}'}, 1),
            ({"TF_CONFIG": "{broken"}, 0),
        ],
    )
    def test_rank(self, variables: dict[str, str], rank: int) -> None:
        assert process_rank(variables) == rank


class TestOther:
    def test_tags_files_and_children(self, job: Run, stub_hub: StubHub, own_folder: Path) -> None:
        (own_folder / "a.txt").write_text("a")
        job.tag("bare")
        job.set_tags({"k": 1})
        job.upload_file("outputs/a.txt", "a.txt")
        with pytest.raises(UserErrorException, match="was uploaded before"):
            job.upload_file("./outputs/a.txt", "a.txt")
        job.upload_folder("more", own_folder)
        with job.child_run("part") as child:
            child.log("x", 1)
        job.complete()
        assert (stub_hub.tags["bare"], stub_hub.tags["k"]) == ("", "1")
        assert stub_hub.files == {"outputs/a.txt": b"a", "more/a.txt": b"a"}
        (created,) = stub_hub.bodies("/api/2.0/mlflow/runs/create")
        assert (created["run_name"], created["tags"][0]["value"]) == ("part", RUN)
        assert [body["run_id"] for body in stub_hub.bodies("/api/2.0/mlflow/runs/update")] == ["c" * 32]

    def test_a_block_that_fails_ends_the_child_as_failed(self, job: Run, stub_hub: StubHub) -> None:
        with pytest.raises(ZeroDivisionError), job.child_run():
            _ = 1 / 0
        (body,) = stub_hub.bodies("/api/2.0/mlflow/runs/update")
        assert body["status"] == "FAILED"

    def test_the_workspace_of_a_job(self, job: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AZUREML_ARM_WORKSPACE_NAME", "team")
        assert (job.experiment.name, job.experiment.workspace.name) == ("birds", "team")
        assert job.experiment.workspace.subscription_id + "/" + job.experiment.workspace.location

    def test_it_is_always_the_same_run(self, job: Run) -> None:
        assert Run.get_context() is job
        assert os.environ["AZUREML_RUN_ID"] == RUN


class TestLoss:
    def test_only_what_is_wrong_is_lost(
        self, job: Run, stub_hub: StubHub, capsys: pytest.CaptureFixture[str]
    ) -> None:
        stub_hub.bad_keys = {"k7"}
        for number in range(20):
            job.log(f"k{number}", number)
        job.flush()
        assert len(stub_hub.metrics) == 19
        assert "'k7' is not logged: a wrong key" in capsys.readouterr().err

    def test_a_hub_that_comes_back_gets_everything_in_order(
        self, job: Run, stub_hub: StubHub, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stub_hub.refuse = 503
        for number in range(2500):
            job.log("x", number)
        assert not job._writer().flush(0.1)
        stub_hub.refuse = 0
        assert job._writer().flush(20)
        assert [value for _, value, _ in stub_hub.metrics] == list(range(2500))
        assert max(len(batch["metrics"]) for batch in stub_hub.batches) <= sender.MAX_METRICS

    def test_who_logs_too_much_loses_the_oldest(
        self, job: Run, stub_hub: StubHub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        stub_hub.refuse = 503
        monkeypatch.setattr(sender, "MAX_WAITING", 10)
        for number in range(25):
            job.log("x", number)
        stub_hub.refuse = 0
        job._writer()._sender._finish(20)
        values = [value for _, value, _ in stub_hub.metrics]
        assert values[-10:] == list(range(15, 25))
        assert "logged values did not reach the hub" in capsys.readouterr().err

    def test_a_token_that_has_ended_raises_nothing(
        self, job: Run, stub_hub: StubHub, capsys: pytest.CaptureFixture[str]
    ) -> None:
        stub_hub.refuse = 401
        for _ in range(3):
            job.log("x", 1)
            job.flush()
        assert capsys.readouterr().err.count("TrainHub:") == 1
        assert job._writer().flush(1)

"""Searches against a small hub: which runs are submitted, how many at once, and how a search ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.azureml.hyperdrive.search_hub import SEARCH_ID, SearchHub
from tests.hub import eventually
from trainhub_azureml.exceptions import ActivityFailedException, UserErrorException
from trainhub_azureml.experiment import Experiment
from trainhub_azureml.hyperdrive.hyperdrive_run import HyperDriveRun
from trainhub_azureml.hyperdrive.parameter_expressions import choice
from trainhub_azureml.hyperdrive.policies import BanditPolicy
from trainhub_azureml.hyperdrive.samplers import GridParameterSampling
from trainhub_azureml.hyperdrive.search_config import HyperDriveConfig, PrimaryMetricGoal
from trainhub_azureml.run import Run
from trainhub_azureml.run_configuration import ScriptRunConfig
from trainhub_azureml.workspace import Workspace
from trainhub_sdk.job import hub_calls

RUNS = "/api/v1/runs/"


@pytest.fixture
def experiment(search_hub: SearchHub) -> Experiment:
    return Experiment(Workspace("s", "g", "team"), "e")


def submit(experiment: Experiment, tags: dict[str, str] | None = None, **others: Any) -> HyperDriveRun:
    """Submits a search of up to four runs of train.py."""
    base = ScriptRunConfig(".", "train.py", arguments=["--lr", 9], compute_target="gpu-cluster")
    fields = {
        "hyperparameter_sampling": GridParameterSampling(
            {"--lr": choice(1, 2), "opt": choice("sgd", "adam")}
        ),
        "primary_metric_name": "accuracy",
        "primary_metric_goal": PrimaryMetricGoal.MAXIMIZE,
        "max_total_runs": 10,
        "run_config": base,
    }
    search = experiment.submit(HyperDriveConfig(**{**fields, **others}), tags)
    assert isinstance(search, HyperDriveRun)
    return search


def test_each_set_of_values_becomes_this_spec_and_all_share_source_and_environment(
    experiment: Experiment, search_hub: SearchHub
) -> None:
    search = submit(experiment, {"team": "vision"})
    assert search.wait_for_completion()["status"] == "Completed"
    specs = search_hub.bodies(RUNS)
    assert [spec["arguments"] for spec in specs] == [
        ["--lr", "9", "--lr", lr, "--opt", opt] for lr in "12" for opt in ("sgd", "adam")
    ]
    assert specs[1] == {
        "experiment": "e",
        "script": "train.py",
        "arguments": ["--lr", "9", "--lr", "1", "--opt", "adam"],
        "resources": {"cluster": "gpu-cluster", "gpus_per_node": "all"},
        "environment": {"name": "system"},
        "environment_variables": {
            "PYTHONPATH": "trainhub_azureml.pyz",
            "AZUREML_ARM_WORKSPACE_NAME": "team",
        },
        "display_name": "Search 10, run 2",
        "source": {"type": "snapshot", "id": "a" * 64},
        "tags": {"hyperparameters": '{"--lr": 1, "opt": "adam"}', "mlflow.parentRunId": SEARCH_ID},
    }
    assert (
        len(search_hub.bodies("/api/v1/snapshots/")) == len(search_hub.bodies("/api/v1/runs/preview/")) == 1
    )
    described = [body for body in search_hub.bodies("/api/2.0/mlflow/runs/log-batch") if body["params"]]
    assert described[1]["params"] == [{"key": "lr", "value": "1"}, {"key": "opt", "value": "adam"}]
    assert search_hub.search["tags"]["team"] == "vision"
    assert "The process" in search_hub.search["tags"]["mlflow.note.content"]


def test_no_more_runs_than_allowed_are_active_at_once(experiment: Experiment, search_hub: SearchHub) -> None:
    search_hub.state = "Running"
    search = submit(experiment, max_concurrent_runs=2)
    for count in (2, 3, 4):
        eventually(lambda count=count: len(search_hub.children) == count)  # type: ignore[misc]
        next(row for row in search_hub.children if row["state"] == "Running")["state"] = "Completed"
    search_hub.set_states("Completed")
    search.wait_for_completion()
    assert (len(search_hub.children), search_hub.most_active) == (4, 2)


def test_hopeless_runs_are_stopped_and_the_best_one_is_known(
    experiment: Experiment, search_hub: SearchHub, capsys: pytest.CaptureFixture[str]
) -> None:
    search_hub.state = "Running"
    search_hub.scores = {11: [0.5, 0.9], 12: [0.4], 13: [0.55, 0.76], 14: []}
    search = submit(experiment, policy=BanditPolicy(slack_factor=0.2))
    eventually(lambda: [row["state"] for row in search_hub.children].count("Canceled") == 1)
    search_hub.scores[13].append(0.7)  # 0.76 stays its best, and 0.9 / 1.2 = 0.75
    search_hub.set_states("Completed")
    search_hub.children[1]["state"] = "Canceled"
    search.wait_for_completion(show_output=True)
    output = capsys.readouterr().out
    reason = "BanditPolicy: after 1 values of accuracy the best was 0.4, and the limit is 0.458333."
    assert f"Run 12 (lr=1, opt=adam) is stopped. {reason}" in output
    assert search_hub.children[1]["tags"]["azureml.hyperdrive.reason"] == reason
    best = search.get_best_run_by_primary_metric()
    assert best is not None
    assert (best.number, best.tags["hyperparameters"]) == (11, '{"--lr": 1, "opt": "sgd"}')
    assert [
        (
            int(row["run_id"], 16),
            row["best_primary_metric"],
            row["status"],
            json.loads(row["hyperparameters"]),
        )
        for row in search.get_children_sorted_by_primary_metric()
    ] == [
        (11, 0.9, "Completed", {"--lr": 1, "opt": "sgd"}),
        (13, 0.76, "Completed", {"--lr": 2, "opt": "sgd"}),
        (12, 0.4, "Canceled", {"--lr": 1, "opt": "adam"}),
        (14, None, "Completed", {"--lr": 2, "opt": "adam"}),
    ]
    rows = search.get_children_sorted_by_primary_metric(reverse=True, discard_no_metric=True)
    assert [int(row["run_id"], 16) for row in rows] == [12, 13, 11]
    assert len(search.get_children_sorted_by_primary_metric(top=2)) == 2
    assert next(iter(search.get_hyperparameters().values())) == '{"--lr": 1, "opt": "sgd"}'


def test_where_less_is_better_the_best_run_has_the_least(
    experiment: Experiment, search_hub: SearchHub
) -> None:
    search_hub.scores = {11: [3.0, 2.0], 12: [9.0, 1.0, 8.0], 13: [0.5], 14: [7.0]}
    search = submit(experiment, primary_metric_goal="minimize")
    search.wait_for_completion()
    search_hub.children[2]["state"] = "Failed"
    best = search.get_best_run_by_primary_metric(include_failed=False)
    assert best is not None
    assert best.number == 12
    every = search.get_best_run_by_primary_metric()
    assert every is not None
    assert every.number == 13


def test_long_curves_are_read_in_several_requests(
    experiment: Experiment, search_hub: SearchHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_calls, "BULK_RUNS", 3)
    monkeypatch.setattr(hub_calls, "BULK_POINTS", 3)
    search_hub.scores = {11: [1.0, 2.0], 12: [1.0, 3.0], 13: [4.0], 14: []}
    search = submit(experiment)
    search.wait_for_completion()
    rows = search.get_children_sorted_by_primary_metric()
    assert [row["best_primary_metric"] for row in rows] == [4.0, 3.0, 2.0, None]


def test_without_the_metric_there_is_no_best_run(experiment: Experiment, search_hub: SearchHub) -> None:
    search = submit(experiment)
    search.wait_for_completion()
    assert search.get_best_run_by_primary_metric() is None


def test_a_hub_that_is_away_only_delays_a_search(
    experiment: Experiment, search_hub: SearchHub, capsys: pytest.CaptureFixture[str]
) -> None:
    search_hub.state = "Running"
    search = submit(experiment, max_concurrent_runs=3)
    eventually(lambda: len(search_hub.children) == 3)
    search_hub.refuse = 500
    errors = ""

    def is_noticed() -> bool:
        nonlocal errors
        errors += capsys.readouterr().err
        return "the search waits: The hub failed with an error of its own (500)" in errors

    eventually(is_noticed)
    search_hub.refuse = 0
    search_hub.state = "Completed"
    search_hub.set_states("Completed")
    assert search.wait_for_completion()["status"] == "Completed"
    assert "the search goes on" in capsys.readouterr().err
    assert search_hub.keys == list(dict.fromkeys(search_hub.keys))
    assert [row["number"] for row in search_hub.children] == [11, 12, 13, 14]


def test_a_refused_run_fails_the_search_after_those_that_run(
    experiment: Experiment, search_hub: SearchHub
) -> None:
    search_hub.state = "Running"
    search = submit(experiment, max_concurrent_runs=1)
    eventually(lambda: search_hub.children)
    search_hub.refused = 422
    search_hub.set_states("Completed")
    with pytest.raises(ActivityFailedException, match="The disk quota is used up"):
        search.wait_for_completion()
    assert len(search_hub.children) == 1


def test_a_source_that_cannot_be_sent_raises_at_once_and_makes_no_search(
    experiment: Experiment, search_hub: SearchHub, own_folder: Path
) -> None:
    (own_folder / ".amlignore").write_text("*\n!train.py\n")
    with pytest.raises(UserErrorException, match="ignore file with the line !trainhub_azureml"):
        submit(experiment)
    assert search_hub.bodies("/api/2.0/mlflow/runs/create") == []


def test_when_its_time_is_over_the_runs_are_stopped(
    experiment: Experiment, search_hub: SearchHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    search_hub.state = "Running"
    search = submit(experiment, max_concurrent_runs=2)
    eventually(lambda: len(search_hub.children) == 2)
    assert search._driver is not None
    monkeypatch.setattr(search._driver, "_end_at", 0)
    assert search.wait_for_completion()["status"] == "Completed"
    assert [row["state"] for row in search_hub.children] == ["Canceled", "Canceled"]
    assert (
        search_hub.search["tags"]["azureml.hyperdrive.reason"] == "Its time was over (max_duration_minutes)."
    )


def test_cancel_stops_the_runs_and_no_more_are_submitted(
    experiment: Experiment, search_hub: SearchHub
) -> None:
    search_hub.state = "Running"
    search = submit(experiment, max_concurrent_runs=2)
    eventually(lambda: len(search_hub.children) == 2)
    assert search.cancel() is True
    with pytest.raises(ActivityFailedException, match="The search 10 is Canceled"):
        search.wait_for_completion()
    assert [row["state"] for row in search_hub.children] == ["Canceled", "Canceled"]


def test_a_search_whose_runs_all_fail_has_failed(experiment: Experiment, search_hub: SearchHub) -> None:
    search_hub.state = "Failed"
    with pytest.raises(ActivityFailedException, match="All its runs have failed"):
        submit(experiment).wait_for_completion()


def test_a_search_that_the_hub_has_given_up_goes_on_when_its_process_is_back(
    experiment: Experiment, search_hub: SearchHub
) -> None:
    search_hub.state = "Running"
    search = submit(experiment)
    eventually(lambda: len(search_hub.children) == 4)
    assert search_hub.search["tags"]["trainhub.alive_until"] > "20"
    search_hub.search["state"] = "Failed"
    eventually(lambda: search_hub.search["state"] == "Running")
    search_hub.set_states("Completed")
    assert search.wait_for_completion()["status"] == "Completed"
    assert search_hub.search["tags"]["trainhub.alive_until"] == ""


def test_a_token_that_is_revoked_ends_the_search_with_a_sentence(
    experiment: Experiment, search_hub: SearchHub
) -> None:
    search_hub.state = "Running"
    search = submit(experiment)
    search_hub.refuse = 401
    with pytest.raises(ActivityFailedException, match=r"was given up: .*Its runs go on"):
        search.wait_for_completion()


def test_a_search_can_be_read_from_another_process(experiment: Experiment, search_hub: SearchHub) -> None:
    search_hub.scores = {11: [1.0]}
    submit(experiment).wait_for_completion()
    other = Run.get(Workspace("s", "g", "team"), SEARCH_ID)
    assert isinstance(other, HyperDriveRun)
    assert (other.type, other.hyperdrive_config) == ("hyperdrive", None)
    best = HyperDriveRun(experiment, SEARCH_ID).get_best_run_by_primary_metric()
    assert best is not None
    assert best.number == 11
    assert sorted(child.number for child in other.get_children()) == [11, 12, 13, 14]


def test_a_dry_run_prints_the_first_spec_and_the_number(
    experiment: Experiment,
    search_hub: SearchHub,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TRAINHUB_DRY_RUN", "1")
    with pytest.raises(SystemExit):
        submit(experiment, max_concurrent_runs=2)
    output = capsys.readouterr().out
    spec, end = json.JSONDecoder().raw_decode(output)
    assert spec["arguments"] == ["--lr", "9", "--lr", "1", "--opt", "sgd"]
    assert output[end:].strip().endswith("# 4 runs like this, at most 2 at once.")
    assert search_hub.bodies(RUNS) == search_hub.bodies("/api/2.0/mlflow/runs/create") == []

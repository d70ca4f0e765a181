"""Logging by MLflow's client: what every process finds, and what a server of the user's own must never
get."""

from __future__ import annotations

import pytest

from tests.launch.builders import make_placement, make_plan, make_spec, mpi, pytorch, tensorflow
from tests.launch.findings.findings_of import found, one, script
from trainhub_launch.distribution import Distribution
from trainhub_launch.errors import SpecError
from trainhub_launch.plan import EnvValue, Reference
from trainhub_launch.spec import Resources, RunSpec, Variable

OWN = {"MLFLOW_TRACKING_URI": Variable(value="https://mlflow.example.org")}
OF_THIS_RUN = {"MLFLOW_TRACKING_TOKEN", "MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_NAME"}
DISTRIBUTIONS = [None, pytorch(2), pytorch(None), mpi(2), tensorflow(2, 1)]


def env(distribution: Distribution | None = None, **fields: object) -> list[dict[str, EnvValue]]:
    spec = make_spec(distribution, resources=Resources(node_count=1), **fields)
    return [dict(process.env) for process in make_plan(spec, make_placement()).processes]


def with_variables(**values: str) -> RunSpec:
    return make_spec(environment_variables={name: Variable(value=value) for name, value in values.items()})


class TestThisHub:
    @pytest.mark.parametrize(
        "distribution", DISTRIBUTIONS, ids=lambda value: value.type if value else "single"
    )
    def test_is_the_tracking_server_of_every_process(self, distribution: Distribution | None) -> None:
        for each in env(distribution, experiment="digits"):
            assert each["MLFLOW_TRACKING_URI"] == each["TRAINHUB_URL"] == Reference("launch", "url")
            assert each["MLFLOW_TRACKING_TOKEN"] == each["TRAINHUB_TOKEN"]
            assert each["MLFLOW_RUN_ID"] == each["TRAINHUB_RUN_ID"]
            assert each["MLFLOW_EXPERIMENT_NAME"] == "digits"

    @pytest.mark.parametrize(
        "name",
        [
            "MLFLOW_RUN_ID",
            "MLFLOW_EXPERIMENT_NAME",
            "MLFLOW_EXPERIMENT_ID",
            "MLFLOW_TRACKING_TOKEN",
            "MLFLOW_TRACKING_USERNAME",
            "MLFLOW_TRACKING_PASSWORD",
            "MLFLOW_TRACKING_AUTH",
        ],
    )
    def test_alone_says_who_logs_and_to_which_run(self, name: str) -> None:
        with pytest.raises(
            SpecError, match="or give the MLFLOW_TRACKING_URI of another server with it"
        ) as refused:
            make_plan(with_variables(**{name: "x"}), make_placement())
        assert refused.value.field == f"environment_variables.{name}"

    @pytest.mark.parametrize(
        "name", ["MLFLOW_REGISTRY_URI", "MLFLOW_DEPLOYMENTS_TARGET", "MLFLOW_GATEWAY_URI"]
    )
    def test_keeps_its_token_from_other_servers(self, name: str) -> None:
        answer = one(with_variables(**{name: "https://elsewhere"}), f"environment_variables.{name}")
        assert (answer.level, f"would send this run's token to {name} too" in answer.message) == (
            "error",
            True,
        )

    def test_lets_what_only_tunes_be_changed(self) -> None:
        own = {"MLFLOW_DISABLE_TELEMETRY": Variable(value="false"), "MLFLOW_TAGS": Variable(value="{}")}
        (each,) = env(environment_variables=own)
        assert (each["MLFLOW_DISABLE_TELEMETRY"], each["MLFLOW_TAGS"]) == ("false", "{}")

    def test_recommends_its_token_for_no_argument(self) -> None:
        message = one(script("$NOPE"), "arguments[0]").message
        assert "MLFLOW_RUN_ID" in message
        assert "TOKEN" not in message


class TestAnotherServer:
    @pytest.mark.parametrize(
        "distribution", DISTRIBUTIONS, ids=lambda value: value.type if value else "single"
    )
    @pytest.mark.parametrize(
        "server", [OWN["MLFLOW_TRACKING_URI"], Variable(secret="theirs"), Variable(value="")]
    )
    def test_gets_nothing_of_this_run(self, distribution: Distribution | None, server: Variable) -> None:
        for each in env(distribution, environment_variables={"MLFLOW_TRACKING_URI": server}):
            told = {name: value for name, value in each.items() if name.startswith("MLFLOW_")}
            assert told.keys() == {"MLFLOW_TRACKING_URI", "MLFLOW_DISABLE_TELEMETRY"}

    def test_may_be_told_everything_by_the_user(self) -> None:
        told = {
            name: Variable(value="theirs")
            for name in (*OF_THIS_RUN, "MLFLOW_REGISTRY_URI", "MLFLOW_TRACKING_USERNAME")
        }
        (each,) = env(environment_variables=OWN | told)
        assert all(each[name] == "theirs" for name in told)

    def test_has_ids_and_tokens_of_its_own(self) -> None:
        told = {
            name: Variable(secret="theirs") for name in ("MLFLOW_TRACKING_TOKEN", "MLFLOW_EXPERIMENT_NAME")
        }
        assert [each.level for each in found(make_spec(environment_variables=OWN | told))] == ["hint"]

    def test_is_pointed_out(self) -> None:
        (answer,) = found(make_spec(environment_variables=OWN))
        assert (answer.level, answer.field) == ("hint", "environment_variables.MLFLOW_TRACKING_URI")
        assert "neither this run's token nor its id" in answer.message

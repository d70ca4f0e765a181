"""MLFLOW_* variables, with which a script that uses MLflow's own client logs to this run, unless the user
names another server."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from trainhub_launch.plan import EnvValue, Reference
from trainhub_launch.spec import RunSpec

SERVER = "MLFLOW_TRACKING_URI"
TOKEN = "MLFLOW_TRACKING_TOKEN"  # noqa: S105 - a name
QUIET: Mapping[str, EnvValue] = {"MLFLOW_DISABLE_TELEMETRY": "true"}
DEFAULTS = frozenset({"MLFLOW_DISABLE_TELEMETRY", "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"})

_WHO = frozenset({TOKEN, "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_AUTH"})
_WHERE = frozenset({"MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_NAME", "MLFLOW_EXPERIMENT_ID"})
# Addresses of further servers, to which the client sends the same token.
_BESIDE = frozenset({"MLFLOW_REGISTRY_URI", "MLFLOW_DEPLOYMENTS_TARGET", "MLFLOW_GATEWAY_URI"})


def variables(spec: RunSpec) -> dict[str, EnvValue]:
    """Returns the variables of every process. If the user names another server, that server gets neither the
    token nor the id of this run."""
    if SERVER in spec.environment_variables:
        return dict(QUIET)
    return {
        SERVER: Reference("launch", "url"),
        TOKEN: Reference("launch", "token"),
        "MLFLOW_RUN_ID": Reference("launch", "run_id"),
        # The client refuses to continue a run while the experiment that is set is not the run's own.
        "MLFLOW_EXPERIMENT_NAME": spec.experiment,
        # Otherwise the client prints the address of a page of MLflow's own server, which the hub does not
        # have.
        "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
        **QUIET,
    }


def is_reserved(name: str, contract: Collection[str]) -> bool:
    # Without TrainHub's token in the environment (the user names another server) these names are the user's
    # own.
    return TOKEN in contract and name in _WHO | _WHERE | _BESIDE


def reserved_sentence(name: str) -> str:
    """Returns why the user may not set this variable of MLflow, or "" for any other variable."""
    if name in _BESIDE:
        return (
            f"MLflow's client would send this run's token to {name} too; give {SERVER} as well, or leave "
            f"{name} out"
        )
    if name in _WHO | _WHERE:
        purpose = "who logs" if name in _WHO else "which run is logged to"
        return (
            f"TrainHub tells MLflow's client {purpose}; leave {name} out, or give the {SERVER} of another "
            "server with it"
        )
    return ""

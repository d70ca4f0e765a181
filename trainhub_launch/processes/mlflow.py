"""MLFLOW_*: with these a script that logs by MLflow's own client logs to this run, unless it is told of
another server."""

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
_BESIDE = frozenset({"MLFLOW_REGISTRY_URI", "MLFLOW_DEPLOYMENTS_TARGET", "MLFLOW_GATEWAY_URI"})
"""Other servers, to which the client sends the same token."""


def variables(spec: RunSpec) -> dict[str, EnvValue]:
    """Of every process. Who names a server of his own gets nothing of this hub's there: neither token nor
    run."""
    if SERVER in spec.environment_variables:
        return dict(QUIET)
    return {
        SERVER: Reference("launch", "url"),
        TOKEN: Reference("launch", "token"),
        "MLFLOW_RUN_ID": Reference("launch", "run_id"),
        # The client refuses to go on with a run while another experiment than the run's is set.
        "MLFLOW_EXPERIMENT_NAME": spec.experiment,
        # It would print the address of a page of MLflow's own.
        "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
        **QUIET,
    }


def is_reserved(name: str, contract: Collection[str]) -> bool:
    return TOKEN in contract and name in _WHO | _WHERE | _BESIDE


def reserved_sentence(name: str) -> str:
    """Why a variable of MLflow's own may not be given, or "" for any other."""
    if name in _BESIDE:
        return (
            f"MLflow's client would send this run's token to {name} too; give {SERVER} as well, or leave "
            f"{name} out"
        )
    if name in _WHO | _WHERE:
        told = "who logs" if name in _WHO else "which run is logged to"
        return (
            f"TrainHub tells MLflow's client {told}; leave {name} out, or give the {SERVER} of another "
            "server with it"
        )
    return ""

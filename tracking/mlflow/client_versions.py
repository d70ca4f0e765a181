"""Which versions of MLflow's client this server supports."""

from __future__ import annotations

CLIENT = "mlflow-python-client"
OLDEST_MAJOR = 3


def mlflow_notice(name: str, version: str) -> str:
    """Returns what to do about a version of MLflow's client that is too old, "" for all others."""
    major = version.partition(".")[0]
    if name != CLIENT or not major.isdecimal() or int(major) >= OLDEST_MAJOR:
        return ""
    return (
        f"MLflow {version} is not supported: models that it logs are no models of their run here. Upgrade "
        f"where the token is used: pip install 'mlflow>={OLDEST_MAJOR}'."
    )

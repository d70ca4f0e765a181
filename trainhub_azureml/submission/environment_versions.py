"""Makes environments on the hub for runs that need them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from trainhub_azureml.exceptions import ExperimentExecutionException
from trainhub_azureml.notices import warn
from trainhub_azureml.submission.environment_choice import EnvironmentChoice
from trainhub_sdk.addresses import escape
from trainhub_sdk.client import Client
from trainhub_sdk.errors import NotFound
from trainhub_sdk.records.environments import EnvironmentVersion

PAUSE_S = 1.0
TIMEOUT_S = 3600.0
_LOCKED, _FAILED = "locked", "failed"


def ensure(client: Client, choice: EnvironmentChoice) -> EnvironmentChoice:
    """Returns the choice with its version on the hub, which is made and waited for if there is none like it.
    Raises ExperimentExecutionException if the hub cannot make it."""
    if choice.body is None:
        return choice
    version = _newest(client, choice.name)
    if version is None or version.state == _FAILED or not _is_same(version, choice.body):
        answer = client.api.call("POST", "/api/v1/environments/", {"name": choice.name, **choice.body})
        version = EnvironmentVersion.from_json(answer)
    return choice._replace(version=_wait(client, version).version)


def _newest(client: Client, name: str) -> EnvironmentVersion | None:
    try:
        answer = client.api.get(f"/api/v1/environments/{escape(name)}/")
    except NotFound:
        return None
    versions = answer.get("versions") or []
    if not versions:
        return None
    newest = max(versions, key=lambda row: int(row["version"]))
    return _read(client, name, str(newest["version"]))


def _read(client: Client, name: str, number: str) -> EnvironmentVersion:
    path = f"/api/v1/environments/{escape(name)}/versions/{escape(number)}/"
    return EnvironmentVersion.from_json(client.api.get(path))


def _is_same(version: EnvironmentVersion, body: Mapping[str, Any]) -> bool:
    if version.kind != body["kind"]:
        return False
    if version.kind == "pip":
        python = body.get("python") or version.python
        return version.requirements == body["requirements"] and version.python == python
    text = body.get("conda") or body.get("dockerfile") or body.get("image") or ""
    return (version.image if version.kind == "image" else version.source).strip() == text.strip()


def _wait(client: Client, version: EnvironmentVersion) -> EnvironmentVersion:
    end = time.monotonic() + TIMEOUT_S
    while version.state != _LOCKED:
        if version.state == _FAILED:
            raise ExperimentExecutionException(
                f"The hub cannot make the environment {version.name}: {version.failure} Correct its "
                f'packages, or map it by [environment."{version.name}"] in trainhub-azureml.toml.'
            )
        if time.monotonic() > end:
            raise ExperimentExecutionException(f"The hub still makes the environment {version.name}.")
        warn(f"The hub makes the environment {version.name}, version {version.version}.")
        time.sleep(PAUSE_S)
        version = _read(client, version.name, version.version)
    return version

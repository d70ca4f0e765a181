"""Submits a run: its spec, its environment if the hub has none like it, its source with this package."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from trainhub_azureml.data.run_data import RunData, collect_run_data
from trainhub_azureml.exceptions import ExperimentExecutionException, UserErrorException
from trainhub_azureml.notices import warn
from trainhub_azureml.submission.dry_run import is_dry_run
from trainhub_azureml.submission.environment_versions import ensure
from trainhub_azureml.submission.job_package import FILE_NAME, job_package
from trainhub_azureml.submission.run_spec import PlannedRun, plan_run, read_config
from trainhub_sdk.errors import FolderRefused, HubRefused

if TYPE_CHECKING:
    from trainhub_azureml.workspace import Workspace
    from trainhub_sdk.client import Client
    from trainhub_sdk.run import Run as HubRun


def submit_run(
    workspace: Workspace, experiment: str, config: Any, tags: Mapping[str, Any] | None
) -> HubRun | None:
    """Returns the run, None in a dry run. Raises UserErrorException, ComputeTargetException, and
    ExperimentExecutionException for what the hub refuses."""
    facts = workspace._facts()
    data = find_run_data(workspace, config)
    planned = plan_run(config, experiment, workspace.name, workspace._mapping(), facts, tags, data)
    for note in planned.notes:
        warn(note)
    if is_dry_run():
        print_plan(workspace, planned)
        return None
    client = workspace._client()
    with refusals_explained():
        return client.submit(prepare_spec(client, planned))


def prepare_spec(client: Client, planned: PlannedRun) -> dict[str, Any]:
    """Returns the whole spec, for which the environment is made and the source stored. The hub's findings are
    printed. Raises HubRefused and FolderRefused."""
    spec = planned.to_json(ensure(client, planned.environment))
    spec["source"] = _source(client, planned.folder)
    for finding in client.preview(spec).findings:
        warn(f"{finding.field}: {finding.message}" if finding.field else finding.message)
    return spec


@contextmanager
def refusals_explained() -> Iterator[None]:
    """Raises UserErrorException for a folder that is no source, and ExperimentExecutionException for what the
    hub refuses."""
    try:
        yield
    except FolderRefused as error:
        raise UserErrorException(f"source_directory: {error}", error) from error
    except HubRefused as error:
        raise ExperimentExecutionException(refusal_text(error), error) from error


def find_run_data(workspace: Workspace, config: Any) -> RunData:
    """Returns the data among the arguments of a run. Raises UserErrorException, and
    ExperimentExecutionException for what the hub refuses."""
    try:
        return collect_run_data(workspace, read_config(config))
    except HubRefused as error:
        raise ExperimentExecutionException(f"The data of the run: {error}", error) from error


def _source(client: Client, folder: str) -> dict[str, str]:
    return {"type": "snapshot", "id": client.upload_folder(folder, {FILE_NAME: job_package()})}


def refusal_text(error: HubRefused) -> str:
    lines = [f"{problem.field}: {problem.message}" for problem in error.problems]
    return "\n".join(["The hub refuses the run.", *(lines or [str(error)])])


def print_plan(workspace: Workspace, planned: PlannedRun) -> None:
    """Prints the spec, and the plan if a hub is known. Raises UserErrorException."""
    spec = planned.to_json(planned.environment)
    print(json.dumps(spec, indent=2, sort_keys=True), flush=True)
    if planned.environment.body is not None:
        print(f"# The hub would make the environment {planned.environment.name}:")
        print(json.dumps(planned.environment.body, indent=2, sort_keys=True), flush=True)
    client = workspace._client_or_none()
    if client is None:
        return
    try:
        spec["source"] = _source(client, planned.folder)
        if planned.environment.body is not None:
            spec["environment"] = {"name": "system"}  # the other is not made in a dry run
        preview = client.preview(spec)
    except (FolderRefused, HubRefused) as error:
        raise UserErrorException(str(error), error) from error
    print(preview.printed, flush=True)
    for finding in preview.findings:
        warn(f"{finding.field}: {finding.message}" if finding.field else finding.message)

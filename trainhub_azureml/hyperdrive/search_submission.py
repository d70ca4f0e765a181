"""Submits a search: the run that stands for it on the hub, and the driver that submits its runs."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from trainhub_azureml.hyperdrive.hyperdrive_run import HyperDriveRun
from trainhub_azureml.hyperdrive.process_end import keep_process
from trainhub_azureml.hyperdrive.search_child import SearchChild
from trainhub_azureml.hyperdrive.search_config import (
    HyperDriveConfig,
    SearchLimits,
    config_with_values,
    script_config_of,
)
from trainhub_azureml.hyperdrive.search_driver import LIFE, SearchDriver
from trainhub_azureml.hyperdrive.search_tags import ALIVE_UNTIL, NOTE
from trainhub_azureml.notices import warn
from trainhub_azureml.run_results import SEARCH
from trainhub_azureml.submission.dry_run import is_dry_run
from trainhub_azureml.submission.run_spec import plan_run
from trainhub_azureml.submission.submit import (
    find_run_data,
    prepare_spec,
    print_plan,
    refusals_explained,
)
from trainhub_sdk.job.hub_calls import HubCalls

if TYPE_CHECKING:
    from trainhub_azureml.experiment import Experiment


def submit_search(
    experiment: Experiment, config: HyperDriveConfig, tags: Mapping[str, Any] | None
) -> HyperDriveRun | None:
    """Returns the search, None in a dry run. Raises UserErrorException, ComputeTargetException, and
    ExperimentExecutionException for what the hub refuses."""
    limits = config.checked()
    base = script_config_of(config)
    sets = config.hyperparameter_sampling.draw_sets(limits.total)
    workspace = experiment.workspace
    facts, data = workspace._facts(), find_run_data(workspace, base)
    plans = [
        plan_run(
            config_with_values(base, values),
            experiment.name,
            workspace.name,
            workspace._mapping(),
            facts,
            data=data,
        )
        for values in sets
    ]
    for note in plans[0].notes:
        warn(note)
    if is_dry_run():
        print_plan(workspace, plans[0])
        print(f"# {len(sets)} runs like this, at most {min(len(sets), limits.at_once)} at once.", flush=True)
        return None
    client = workspace._client()
    with refusals_explained():
        first = prepare_spec(client, plans[0])
        shared = {"source": first["source"], "environment": first["environment"]}
        answer = HubCalls(client.api).create_run(
            experiment._ensure_id(),
            f"Search of {config.primary_metric_name}",
            _tags(config, limits, len(sets), tags),
        )
        search = HyperDriveRun(experiment, answer["info"]["run_id"], config)
        number = search.number
        children = [
            SearchChild({**plan.spec, **shared, "display_name": f"Search {number}, run {index}"}, values)
            for index, (plan, values) in enumerate(zip(plans, sets), 1)
        ]
    driver = SearchDriver(client, search._row(), config.primary_metric_name, limits, children)
    search._driver = driver
    keep_process(driver)
    driver.start()
    return search


def _tags(
    config: HyperDriveConfig, limits: SearchLimits, count: int, tags: Mapping[str, Any] | None
) -> dict[str, str]:
    facts = {
        "primary_metric_name": config.primary_metric_name,
        "primary_metric_goal": limits.goal.value,
        "policy": type(limits.policy).__name__,
        "runs": count,
        "concurrent_runs": limits.at_once,
    }
    note = (
        f"The process {os.getpid()} on {socket.gethostname()} submits the {count} runs of this search. If it "
        "is gone, the search fails after a quarter of an hour, and the runs that it has submitted go on."
    )
    own = {str(key): "" if value is None else str(value) for key, value in (tags or {}).items()}
    alive_until = (datetime.now(timezone.utc) + LIFE).isoformat()
    return {**own, SEARCH: json.dumps(facts), NOTE: note, ALIVE_UNTIL: alive_until}

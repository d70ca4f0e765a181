"""What the runs of a search have reached."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from trainhub_azureml.hyperdrive.search_config import PrimaryMetricGoal
from trainhub_azureml.run_results import PARENT
from trainhub_sdk.client import MAX_PAGE
from trainhub_sdk.job.metric_names import metric_key

if TYPE_CHECKING:
    from trainhub_sdk.client import Client
    from trainhub_sdk.job.hub_calls import HubCalls
    from trainhub_sdk.run import Run as HubRun


def child_rows(client: Client, search_id: str) -> Iterator[HubRun]:
    """Yields the runs of a search, the newest first."""
    return client.runs(f"tags.{PARENT} = '{search_id}'", page_size=str(MAX_PAGE))


def sign_of(goal: PrimaryMetricGoal) -> int:
    """Returns by what a value is multiplied so that more is better."""
    return 1 if goal is PrimaryMetricGoal.MAXIMIZE else -1


def read_scores(
    calls: HubCalls, run_ids: Sequence[str], metric: str, goal: PrimaryMetricGoal
) -> dict[str, list[float]]:
    """Returns by the id of each run the scores that it has logged, in that order. Raises TrainHubError."""
    sign = sign_of(goal)
    histories = calls.histories(run_ids, metric_key(metric))
    return {run_id: [sign * value for value in values] for run_id, values in histories.items()}

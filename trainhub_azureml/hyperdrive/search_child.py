"""One run of a search, as its driver knows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainhub_azureml.hyperdrive.policies import ScoreCurve
from trainhub_azureml.hyperdrive.samplers import values_text
from trainhub_azureml.hyperdrive.search_tags import HYPERPARAMETERS
from trainhub_azureml.run_results import PARENT
from trainhub_sdk.job.metric_names import metric_key
from trainhub_sdk.run import Run as HubRun


class SearchChild:
    """`row`: the run on the hub, None until it is submitted; `is_described`: whether the hub has its params;
    `curve`: the scores that it has logged, of which a policy has seen the first `judged`; `reason`: why it is
    being stopped, "" = it is not."""

    def __init__(self, spec: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        self.spec = spec
        self.values = values
        self.row: HubRun | None = None
        self.is_described = False
        self.curve = ScoreCurve()
        self.judged = 0
        self.reason = ""

    @property
    def is_active(self) -> bool:
        return self.row is not None and not self.row.is_final

    @property
    def text(self) -> str:
        """Its number and its hyperparameters, for people."""
        values = ", ".join(f"{name.lstrip('-')}={value}" for name, value in self.values.items())
        return f"Run {self.row.number} ({values})" if self.row else f"The run with {values}"

    @property
    def params(self) -> dict[str, str]:
        """Its hyperparameters, for the pages that compare runs."""
        return {metric_key(name.lstrip("-") or name): str(value) for name, value in self.values.items()}

    def spec_in(self, search_id: str) -> dict[str, Any]:
        """Returns its spec as a part of the search."""
        tags = {HYPERPARAMETERS: values_text(self.values), PARENT: search_id}
        return {**self.spec, "tags": {**self.spec.get("tags", {}), **tags}}

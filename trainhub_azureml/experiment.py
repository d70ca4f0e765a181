"""Experiments: runs under one name."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Union

from trainhub_azureml.exceptions import UserErrorException

if TYPE_CHECKING:
    from trainhub_azureml.run import Run
    from trainhub_azureml.workspace import Workspace

    TagFilter = Union[str, Mapping[str, Any], None]


class Experiment:
    """It exists from its first run on."""

    def __init__(self, workspace: Workspace, name: str, **_others: Any) -> None:
        if not name or not isinstance(name, str):
            raise UserErrorException("Experiment: name must be a text that is not empty.")
        self.workspace = workspace
        self.name = name

    @property
    def id(self) -> str:
        return str(self._find_id() or "")

    @staticmethod
    def list(workspace: Workspace, **_others: Any) -> list[Experiment]:
        answer = workspace._client().api.call(
            "POST", "/api/2.0/mlflow/experiments/search", {"max_results": 1000}
        )
        return [Experiment(workspace, row["name"]) for row in answer.get("experiments") or ()]

    def submit(self, config: Any, tags: Mapping[str, Any] | None = None, **others: Any) -> Run:
        """Submits a run of a ScriptRunConfig or an estimator, or a search of a HyperDriveConfig. Returns it
        at once. With TRAINHUB_DRY_RUN=1 the spec is printed, and the process ends. Raises UserErrorException,
        ComputeTargetException, and ExperimentExecutionException for what the hub refuses."""
        unknown = [name for name in others if name not in ("wait_post_processing", "show_output")]
        if unknown:
            raise UserErrorException(f"submit: {unknown[0]} is not offered.")
        run = self._submit(config, tags)
        if run is None:
            # What follows in a script needs a run: its waiting, its files, its model.
            print("TrainHub: nothing was submitted (TRAINHUB_DRY_RUN).", file=sys.stderr, flush=True)
            raise SystemExit(0)
        return run

    def _submit(self, config: Any, tags: Mapping[str, Any] | None) -> Run | None:
        """Returns the run, None in a dry run."""
        from trainhub_azureml.hyperdrive.search_config import HyperDriveConfig
        from trainhub_azureml.run import Run
        from trainhub_azureml.submission.submit import submit_run

        if isinstance(config, HyperDriveConfig):
            from trainhub_azureml.hyperdrive.search_submission import submit_search

            return submit_search(self, config, tags)
        row = submit_run(self.workspace, self.name, config, tags)
        return None if row is None else Run._of_hub(self, row)

    def get_runs(
        self,
        type: str | None = None,
        tags: TagFilter = None,
        properties: TagFilter = None,
        status: str | None = None,
        include_children: bool = False,
        **_others: Any,
    ) -> Iterator[Run]:
        """Yields its runs, the newest first. `tags`, `properties`: the name of one that they have, or a dict
        of names and values, where None is any value."""
        from trainhub_azureml.run import Run

        for row in self.workspace._client().runs(experiment=self.name):
            run = Run._of_hub(self, row)
            if row.parent and not include_children:
                continue
            if type is not None and run.type != type:
                continue
            if status is not None and run.status.lower() != status.lower():
                continue
            if matches(run.tags, tags) and matches(run.properties, properties):
                yield run

    def start_logging(
        self,
        *_arguments: Any,
        outputs: Any = None,
        snapshot_directory: Any = ".",
        display_name: str | None = None,
        **_others: Any,
    ) -> Any:
        """Opens a run to which this process logs, until `complete` or `fail`. Its source is not kept. With
        TRAINHUB_DRY_RUN=1 it opens none, and returns what `Run.get_context()` gives outside of a run."""
        from trainhub_azureml.job.offline_run import _OfflineRun
        from trainhub_azureml.run import Run
        from trainhub_azureml.submission.dry_run import is_dry_run

        if is_dry_run():
            print("TrainHub: no run was opened (TRAINHUB_DRY_RUN).", file=sys.stderr, flush=True)
            return _OfflineRun(name=display_name or "")
        return Run._start(self, display_name or "")

    def get_portal_url(self) -> str:
        """Returns the address of its page."""
        from urllib.parse import quote

        return f"{self.workspace._client().api.url}/runs/?experiment={quote(self.name)}"

    def _find_id(self) -> str | None:
        from trainhub_sdk.errors import NotFound

        try:
            path = "/api/2.0/mlflow/experiments/get-by-name"
            answer = self.workspace._client().api.get(path, experiment_name=self.name)
        except NotFound:
            return None
        return str(answer["experiment"]["experiment_id"])

    def _ensure_id(self) -> str:
        """Returns the id, for which the experiment is made if there is none."""
        existing_id = self._find_id()
        if existing_id is not None:
            return existing_id
        path = "/api/2.0/mlflow/experiments/create"
        return str(self.workspace._client().api.call("POST", path, {"name": self.name})["experiment_id"])

    def __repr__(self) -> str:
        return f"Experiment(Name: {self.name}, Workspace: {self.workspace.name})"

    def _repr_html_(self) -> str:
        import html

        link = html.escape(self.get_portal_url())
        return f'<a href="{link}" target="_blank">{html.escape(self.name)}</a>'


def matches(values: Mapping[str, Any], required: TagFilter) -> bool:
    if required is None:
        return True
    if isinstance(required, str):
        return required in values
    return all(
        name in values and (value is None or values[name] == value) for name, value in required.items()
    )

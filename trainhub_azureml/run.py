"""Runs: inside a job that of this process, from outside any of the hub."""

from __future__ import annotations

import os
import posixpath

from trainhub_azureml.exceptions import RunEnvironmentException, UserErrorException
from trainhub_azureml.job.offline_run import _OfflineRun
from trainhub_azureml.job.run_logging import RunLogging
from trainhub_azureml.run_files import OUTPUTS, UPLOAD
from trainhub_azureml.run_results import PARENT, SEARCH, RunResults
from trainhub_sdk.job.metric_names import metric_key
from trainhub_sdk.job.process_rank import process_rank

# Not typing.TYPE_CHECKING: every process of a job imports this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from trainhub_azureml.experiment import Experiment
    from trainhub_azureml.job.run_writer import RunWriter
    from trainhub_azureml.workspace import Workspace
    from trainhub_sdk.job.hub_calls import HubCalls
    from trainhub_sdk.run import Run as HubRun

RUN_ID, TOKEN, URL = "TRAINHUB_RUN_ID", "TRAINHUB_TOKEN", "TRAINHUB_URL"
RUN_DATA = "AZUREML_RUN_DATA"
# MLflow's words for the states of the SDK v1.
_STATES = {"RUNNING": "Running", "SCHEDULED": "Running", "FINISHED": "Completed", "FAILED": "Failed"}
_context: dict[int, Run] = {}


class Run(RunLogging, RunResults):
    """A run by its id. `Run.get_context()` returns that of this process."""

    def __init__(self, experiment: Experiment | None, run_id: str, outputs: Any = None, **_others: Any):
        self._experiment = experiment
        self._run_id = str(run_id)
        self._is_of_job = False
        self._parent: Run | None = None
        self._hub_run: HubRun | None = None
        self._open_writer: RunWriter | None = None
        self._job_facts: dict[str, Any] = {}

    @classmethod
    def get_context(cls, allow_offline: bool = True, **_others: Any) -> Any:
        """Returns the run of the job of this process; in a process of no job an object that prints what is
        logged. Raises RunEnvironmentException instead, unless `allow_offline`."""
        run_id = os.environ.get(RUN_ID, "")
        if run_id and os.environ.get(URL) and os.environ.get(TOKEN):
            # A child process logs by connections of its own.
            key = os.getpid()
            if key not in _context or _context[key].id != run_id:
                run = cls(None, run_id)
                run._is_of_job = True
                _context[key] = run
                os.environ.setdefault("AZUREML_RUN_ID", run_id)
                if os.environ.get(RUN_DATA):
                    run.output_datasets  # noqa: B018 - makes their folders
            return _context[key]
        if not allow_offline:
            raise RunEnvironmentException(f"This process is part of no run: {RUN_ID} is not set.")
        return _OfflineRun()

    @staticmethod
    def get(workspace: Workspace, run_id: str) -> Run:
        """Returns a run by its id or number. Raises NotFound."""
        from trainhub_azureml.experiment import Experiment

        row = workspace._client().run(run_id)
        return Run._of_hub(Experiment(workspace, row.experiment), row)

    @classmethod
    def _of_hub(cls, experiment: Experiment, row: HubRun) -> Run:
        if SEARCH in row.tags:
            from trainhub_azureml.hyperdrive.hyperdrive_run import HyperDriveRun

            run: Run = HyperDriveRun(experiment, row.id)
        else:
            run = cls(experiment, row.id)
        run._hub_run = row
        return run

    @classmethod
    def _start(cls, experiment: Experiment, name: str, parent: Run | None = None) -> Run:
        from trainhub_sdk.job.hub_calls import HubCalls

        calls = HubCalls(experiment.workspace._client().api)
        tags = {PARENT: parent.id} if parent else {}
        answer = calls.create_run(experiment._ensure_id(), name, tags)
        run = cls(experiment, answer["info"]["run_id"])
        run._parent = parent
        return run

    @property
    def id(self) -> str:
        return self._run_id

    @property
    def input_datasets(self) -> Mapping[str, Any]:
        """For each input of this job its path, or an object for tables; nothing of other runs."""
        if not self._is_of_job or self._parent is not None:
            return {}
        from trainhub_azureml.job.input_datasets import InputDatasets

        if "inputs" not in self._job_facts:
            self._job_facts["inputs"] = InputDatasets()
        inputs: Mapping[str, Any] = self._job_facts["inputs"]
        return inputs

    @property
    def output_datasets(self) -> Mapping[str, str]:
        """For each OutputFileDatasetConfig of this job its folder."""
        if not self._is_of_job or self._parent is not None:
            return {}
        from trainhub_azureml.job.input_datasets import output_folders

        return output_folders()

    @property
    def experiment(self) -> Experiment:
        if self._experiment is None:
            from trainhub_azureml.experiment import Experiment
            from trainhub_azureml.workspace import Workspace

            name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or "default"
            self._experiment = Experiment(Workspace._of_job(), name)
        return self._experiment

    @property
    def parent(self) -> Run | None:
        """The run of which this one is a part, None if it is part of none."""
        if self._parent is not None:
            return self._parent
        parent_id = self._parent_id()
        return Run(self.experiment, parent_id) if parent_id else None

    def _parent_id(self) -> str:
        if not self._is_of_job:
            return str(self._row().parent or "")
        if "parent" not in self._job_facts:
            tags = self._calls().run(self.id)["data"].get("tags") or ()
            found = (tag["value"] for tag in tags if tag["key"] == PARENT)
            self._job_facts["parent"] = next(found, "")
        return str(self._job_facts["parent"])

    def child_run(self, name: str | None = None, run_id: Any = None, outputs: Any = None) -> Run:
        """Opens a run that is a part of this one. It ends by `complete`, `fail`, or with a `with` block."""
        if not self._is_of_job:
            return Run._start(self.experiment, name or "", self)
        info = self._calls().run(self.id)["info"]
        answer = self._calls().create_run(info["experiment_id"], name or "", {PARENT: self.id})
        return self._child(answer["info"]["run_id"])

    def create_children(
        self, count: int | None = None, tag_key: Any = None, tag_values: Any = None
    ) -> list[Run]:
        """Opens several at once: `count`, or one for each of `tag_values`, which it has as the tag
        `tag_key`."""
        if (count is None) == (tag_values is None):
            raise UserErrorException("create_children: give either count, or tag_key with tag_values.")
        children = [self.child_run() for _ in range(len(tag_values) if count is None else count)]
        for child, value in zip(children, tag_values or ()):
            child.tag(tag_key, value)
        return children

    def get_children(
        self, recursive: bool = False, tags: Any = None, properties: Any = None, **filters: Any
    ) -> Iterator[Run]:
        """Yields the runs that are parts of this one, the newest first."""
        from trainhub_azureml.experiment import matches

        for child in self._children():
            if matches(child.get_tags(), tags) and matches(child.get_properties(), properties):
                yield child
            if recursive:
                yield from child.get_children(True, tags, properties)

    def _children(self) -> Iterator[Run]:
        if not self._is_of_job:
            for row in self.experiment.workspace._client().runs(parent=self.id):
                yield Run._of_hub(self.experiment, row)
            return
        info = self._calls().run(self.id)["info"]
        for answer in self._calls().children(info["experiment_id"], self.id):
            yield self._child(answer["info"]["run_id"])

    def _child(self, run_id: str) -> Run:
        child = Run(self._experiment, run_id)
        child._is_of_job, child._parent = True, self
        return child

    def get_status(self) -> str:
        """Returns the state as of now."""
        if not self._is_of_job:
            return str(self._row(refresh=True).state)
        return _STATES.get(self._calls().run(self.id)["info"]["status"], "Canceled")

    def get_metrics(self, name: str | None = None, recursive: bool = False, **_others: Any) -> dict[str, Any]:
        """Returns what was logged: for each name a value, a list if there are several, {column: list} of a
        table. With `recursive` also what its parts have logged."""
        from trainhub_azureml.job.metric_shapes import read_metrics

        if self._open_writer is not None:
            self._open_writer.flush()
        metrics = read_metrics(self._calls(), self.id, name)
        for child in self.get_children(recursive=True) if recursive else ():
            for key, value in child.get_metrics(name).items():
                metrics.setdefault(key, value)
        return metrics

    def upload_file(self, name: str, path_or_stream: Any, datastore_name: str = "") -> None:
        """Stores a file under the path `name`, at once. Raises UserErrorException if this process has stored
        one of that name, TrainHubError if the hub does not take it, and OSError if it cannot be read."""
        path = posixpath.normpath(name)
        uploads = self._job_facts.setdefault("uploads", set())
        if path in uploads:
            raise UserErrorException(f"upload_file: {name} was uploaded before; give another name.")
        super().upload_file(name, path_or_stream, datastore_name)
        uploads.add(path)
        if not path.startswith(OUTPUTS):
            # For `get_file_names`: nothing else tells it from a file of the folder `outputs`.
            self._writer().set_tag(UPLOAD + metric_key(path), path)

    def _writer(self) -> RunWriter:
        if self._open_writer is None:
            from trainhub_azureml.job.run_writer import RunWriter

            rank = process_rank() if self._is_of_job and self._parent is None else 0
            self._open_writer = RunWriter(self._calls, self.id, rank)
        return self._open_writer

    def _calls(self) -> HubCalls:
        from trainhub_sdk.job.hub_calls import HubCalls

        if not self._is_of_job:
            return HubCalls(self.experiment.workspace._client().api)
        if "calls" not in self._job_facts:
            self._job_facts["calls"] = HubCalls.of_job(os.environ)
        calls: HubCalls = self._job_facts["calls"]
        return calls

    def _row(self, *, refresh: bool = False) -> HubRun:
        if self._hub_run is None:
            self._hub_run = self.experiment.workspace._client().run(self.id)
        elif refresh:
            self._hub_run.refresh()
        return self._hub_run

    def _end(self, status: str, *, set_status: bool) -> None:
        if self._open_writer is not None:
            self._open_writer.flush()
        is_job = self._is_of_job and self._parent is None
        if set_status and not is_job and (self._is_of_job or self._row(refresh=True).kind != "job"):
            self._calls().end_run(self.id, status)

    @staticmethod
    def list(experiment: Experiment, **filters: Any) -> Iterator[Run]:
        return experiment.get_runs(**filters)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        if self._is_of_job:
            return f"Run(Id: {self.id})"
        return f"Run(Experiment: {self.experiment.name}, Id: {self.id}, Status: {self.status})"

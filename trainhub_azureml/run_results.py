"""What a script that has submitted a run does with it: wait, read, download, register."""

from __future__ import annotations

from trainhub_azureml.exceptions import ActivityFailedException, UserErrorException
from trainhub_azureml.run_files import LOGS, RunFiles

# Not typing.TYPE_CHECKING: every process of a job imports this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


PROPERTY = "azureml.property/"
# Of a run that stands for a search of hyperparameters.
SEARCH = "azureml.hyperdrive"
# MLflow's tag of a run that is part of another: the id of that one.
PARENT = "mlflow.parentRunId"
_OWN = ("azureml.", "mlflow.", "trainhub.")


class RunResults(RunFiles):
    """The calls from outside. Those that read tags, metrics and files also work in the job."""

    def get_status(self) -> str:
        raise NotImplementedError

    @property
    def number(self) -> int:
        return self._row().number

    @property
    def name(self) -> str:
        return self._row().display_name or self.id

    @property
    def display_name(self) -> str:
        return self.name

    @display_name.setter
    def display_name(self, value: str) -> None:
        self._calls().api.call("POST", "/api/2.0/mlflow/runs/update", {"run_id": self.id, "run_name": value})
        self._row(refresh=True)

    @property
    def type(self) -> str:
        if SEARCH in self._row().tags:
            return "hyperdrive"
        return "azureml.scriptrun" if self._row().kind == "job" else "azureml.run"

    @property
    def status(self) -> str:
        """The state as it was last asked for."""
        return self.get_status() if self._is_of_job else self._row().state

    @property
    def tags(self) -> dict[str, Any]:
        return _own_tags(self._all_tags())

    @property
    def properties(self) -> dict[str, Any]:
        tags = self._all_tags()
        return {key[len(PROPERTY) :]: value for key, value in tags.items() if key.startswith(PROPERTY)}

    def get_tags(self) -> dict[str, Any]:
        """Returns the tags as of now."""
        return _own_tags(self._all_tags(refresh=True))

    def get_properties(self) -> dict[str, Any]:
        self._all_tags(refresh=True)
        return self.properties

    def add_properties(self, properties: Mapping[str, Any]) -> None:
        """Raises UserErrorException for one that has another value already: they never change."""
        present = self.get_properties()
        for key, value in properties.items():
            if present.get(key, str(value)) != str(value):
                raise UserErrorException(f"add_properties: {key} is {present[key]!r}, and never changes.")
        for key, value in properties.items():
            body = {"run_id": self.id, "key": PROPERTY + key, "value": str(value)}
            self._calls().api.call("POST", "/api/2.0/mlflow/runs/set-tag", body)

    def remove_tags(self, tags: Any) -> None:
        for key in [tags] if isinstance(tags, str) else tags:
            self._calls().delete_tag(self.id, key)

    def wait_for_completion(
        self,
        show_output: bool = False,
        wait_post_processing: bool = False,
        raise_on_error: bool = True,
    ) -> dict[str, Any]:
        """Returns the details of the run when it has ended; with `show_output` its log is printed meanwhile.
        Interrupting it does not stop the run. Raises ActivityFailedException if it has failed or was
        canceled, unless `raise_on_error` is False."""
        row = self._row(refresh=True)
        if show_output:
            print(f"Run {row.number}: {row.url}", flush=True)
        row.wait(show_output=show_output and row.kind == "job", raise_on_error=False)
        if raise_on_error and row.state != "Completed":
            raise ActivityFailedException(row.explain())
        return self.get_details()

    def cancel(self) -> None:
        """Stops the run. Repeating this has no effect."""
        if self._row().kind == "job":
            self._row().cancel()
        else:
            self._calls().end_run(self.id, "KILLED")

    def get_details(self) -> dict[str, Any]:
        row = self._row(refresh=True)
        spec = row.spec or {}
        resources = spec.get("resources") or {}
        details: dict[str, Any] = {
            "runId": row.id,
            "target": resources.get("cluster") or row.cluster,
            "status": row.state,
            "startTimeUtc": row.started_at,
            "endTimeUtc": row.finished_at,
            "services": {},
            "properties": self.properties,
            "inputDatasets": [],
            "outputDatasets": [],
            "runDefinition": {
                "script": spec.get("script") or None,
                "command": " ".join(spec.get("command") or ()),
                "arguments": list(spec.get("arguments") or ()),
                "target": resources.get("cluster"),
                "nodeCount": resources.get("node_count") or 1,
                "environment": spec.get("environment"),
                "environmentVariables": spec.get("environment_variables") or {},
            },
            "logFiles": self._log_files(),
            "submittedBy": row.created_by,
        }
        if row.state == "Failed":
            details["error"] = {"error": {"code": row.reason, "message": row.explain()}}
        return details

    def get_details_with_logs(self) -> dict[str, Any]:
        """Returns the details, with the text of the logs in place of their addresses."""
        details = self.get_details()
        logs: dict[str, str] = {}
        for part in self._row().all_logs() if self._row().kind == "job" else ():
            name = LOGS + part.log
            logs[name] = logs.get(name, "") + part.text
        details["logFiles"] = logs
        return details

    def get_portal_url(self) -> str:
        """Returns the address of its page."""
        return self._row().url

    def get_environment(self) -> Any:
        from trainhub_azureml.environment import Environment

        name = ((self._row().spec or {}).get("environment") or {}).get("name") or "system"
        return Environment(name)

    def _all_tags(self, *, refresh: bool = False) -> dict[str, Any]:
        if self._is_of_job:
            tags = self._calls().run(self.id)["data"].get("tags") or ()
            return {tag["key"]: tag["value"] for tag in tags}
        return dict(self._row(refresh=refresh).tags)

    def _repr_html_(self) -> str | None:
        return None if self._is_of_job else self._row()._repr_html_()


def _own_tags(tags: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the tags that scripts and people have set; one without a value has None."""
    return {key: value or None for key, value in tags.items() if not key.startswith(_OWN)}

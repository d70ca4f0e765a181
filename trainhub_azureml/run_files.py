"""The files of a run: what it has left, what was uploaded, its logs, and models made of them."""

from __future__ import annotations

import os
import posixpath

from trainhub_azureml.exceptions import UserErrorException

# Not typing.TYPE_CHECKING: every process of a job imports this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from trainhub_azureml.experiment import Experiment
    from trainhub_azureml.models.model import Model
    from trainhub_sdk.job.hub_calls import HubCalls
    from trainhub_sdk.run import Run as HubRun

OUTPUTS, LOGS = "outputs/", "azureml-logs/"
UPLOAD = "azureml.upload/"
# What this package stores beside the files of the script.
TABLES, MODELS = "azureml/tables", "azureml/models"


class RunFiles:
    """The calls about files. In a job they see what is on the hub already."""

    _is_of_job: bool

    @property
    def id(self) -> str:
        raise NotImplementedError

    @property
    def experiment(self) -> Experiment:
        raise NotImplementedError

    def _row(self, *, refresh: bool = False) -> HubRun:
        raise NotImplementedError

    def _calls(self) -> HubCalls:
        raise NotImplementedError

    def get_file_names(self) -> list[str]:
        """Returns the paths of its files: what it has left in `outputs`, what was uploaded, its logs."""
        return sorted(self._files())

    def download_file(
        self, name: str, output_file_path: Any = None, _validate_checksum: bool = False, **_others: Any
    ) -> None:
        """Downloads a file to `output_file_path`, a file or a folder, by default into the current folder.
        Raises UserErrorException if the run has no such file."""
        files = self._files()
        path = posixpath.normpath(name)
        address = files.get(path) or files.get(OUTPUTS + path)
        if address is None:
            near = [file for file in files if posixpath.basename(file) == posixpath.basename(path)]
            hint = f"Is {near[0]} meant?" if near else f"It has {len(files)}; see get_file_names()."
            raise UserErrorException(f"Run {self._row().number} has no file {name}. {hint}")
        target = os.fspath(output_file_path) if output_file_path is not None else posixpath.basename(path)
        if os.path.isdir(target) or target.endswith(("/", os.sep)):
            target = os.path.join(target, posixpath.basename(path))
        self._fetch(address, target)

    def download_files(
        self,
        prefix: str | None = None,
        output_directory: Any = None,
        output_paths: Any = None,
        batch_size: int = 100,
        append_prefix: bool = True,
        timeout_seconds: Any = None,
    ) -> None:
        """Downloads all files whose path begins with `prefix` into `output_directory`."""
        start = posixpath.normpath(prefix) if prefix else ""
        folder = os.fspath(output_directory or ".")
        for path, address in self._files().items():
            if not path.startswith(start):
                continue
            below = path if append_prefix else path[len(start) :].lstrip("/") or posixpath.basename(path)
            self._fetch(address, os.path.join(folder, *below.split("/")))

    def get_all_logs(self, destination: Any = None) -> list[str]:
        """Downloads its logs into the folder `destination`. Returns their paths."""
        folder = os.fspath(destination or ".")
        paths = []
        for name, address in self._log_files().items():
            paths.append(os.path.join(folder, *name.split("/")))
            self._fetch(address, paths[-1])
        return paths

    def register_model(
        self,
        model_name: str,
        model_path: Any = None,
        tags: Mapping[str, Any] | None = None,
        properties: Mapping[str, Any] | None = None,
        model_framework: Any = None,
        model_framework_version: Any = None,
        description: str | None = None,
        **others: Any,
    ) -> Model:
        """Registers a file or folder of the run as the next version of a model. Returns it. Raises HubRefused
        if the run has no such file."""
        from trainhub_azureml.models.model import Model, model_of_row
        from trainhub_azureml.models.version_tags import version_tags

        path = posixpath.normpath(os.fspath(model_path or model_name))
        all_tags = version_tags(tags, properties, model_framework, model_framework_version, others)
        if self._is_of_job:
            source = f"runs:/{self.id}/{path}"
            answer = self._calls().register(model_name, self.id, source, description or "", all_tags)
            return model_of_row(self.experiment.workspace, answer)
        row = self._row(refresh=True)
        version = row.register_model(
            model_name, self._stored_path(path), description=description or "", tags=all_tags
        )
        return Model(self.experiment.workspace, version.model, version=version.version)

    def _stored_path(self, path: str) -> str:
        """Returns the path on the hub, where the files of `outputs` have no folder of that name."""
        stored = {file.path for file in self._row().files()}
        if any(name == path or name.startswith(f"{path}/") for name in stored):
            return path
        return path[len(OUTPUTS) :] if path.startswith(OUTPUTS) else path

    def _files(self) -> dict[str, str]:
        """Returns the address of each file by its path in the SDK v1."""
        if self._is_of_job:
            return dict.fromkeys(self._calls().files(self.id), "")
        uploads = {path for key, path in self._row(refresh=True).tags.items() if key.startswith(UPLOAD)}
        files = {}
        for file in self._row().files():
            # The hub has the files of `outputs` without the name of that folder.
            is_whole = file.path in uploads or file.path.startswith((OUTPUTS, "logs/"))
            if not file.path.startswith((f"{TABLES}/", f"{MODELS}/")):
                files[file.path if is_whole else OUTPUTS + file.path] = file.url
        return {**files, **self._log_files()}

    def _log_files(self) -> dict[str, str]:
        if self._is_of_job or self._row().kind != "job":
            return {}
        return {LOGS + log.name: log.url for log in self._row().log_list()}

    def _fetch(self, address: str, target: str) -> None:
        from pathlib import Path

        from trainhub_sdk.transfers import download

        download(self._row().api, address, Path(target))

"""Registered models: each object is one version."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from trainhub_azureml.exceptions import ModelNotFoundException, UserErrorException
from trainhub_azureml.models import version_tags
from trainhub_azureml.models.model_changes import ModelChanges
from trainhub_azureml.models.registry_calls import RegistryCalls
from trainhub_azureml.not_offered import name_sentence

if TYPE_CHECKING:
    from trainhub_azureml.run import Run
    from trainhub_azureml.workspace import Workspace
    from trainhub_sdk.models import ModelVersion

_MODULE = "azureml.core.model"


class ModelFramework:
    """Values of `model_framework`: `Model.Framework`."""

    CUSTOM = "Custom"
    MULTI = "Multi"
    ONNX = "Onnx"
    PYTORCH = "PyTorch"
    SCIKITLEARN = "ScikitLearn"
    TENSORFLOW = "TensorFlow"
    TFKERAS = "TfKeras"


class Model(ModelChanges):
    """A version of a registered model, by `id` (`name:3`) or by `name` and `version`, by default the newest
    that has the `tags` and `properties`, which are lists such as `['key', ['other', 'its value']]`. Raises
    ModelNotFoundException."""

    Framework = ModelFramework

    def __init__(
        self,
        workspace: Workspace,
        name: str | None = None,
        id: str | None = None,
        tags: Any = None,
        properties: Any = None,
        version: Any = None,
        run_id: str | None = None,
        model_framework: str | None = None,
        **_others: Any,
    ) -> None:
        if id:
            name, _, version = id.rpartition(":")
        if not name:
            raise UserErrorException("Model: give its name, or its id such as birds:3.")
        rows = _matching(workspace, name, tags, properties, run_id, model_framework, version)
        newest = max(rows, key=lambda row: int(row["version"]), default=None)
        if newest is None:
            what = name if version is None else f"{name}:{version}"
            conditions = (tags, properties, run_id, model_framework)
            suffix = " with these tags, properties, run and framework" if any(conditions) else ""
            raise ModelNotFoundException(f"There is no model {what}{suffix}.")
        self._take(workspace, newest)

    def _take(self, workspace: Workspace, row: Mapping[str, Any]) -> None:
        self.workspace = workspace
        self.name = str(row["name"])
        self.version = int(row["version"])
        self.description = str(row.get("description") or "")
        self.run_id: str | None = row.get("run_id") or None
        self.created_time = _time(row.get("creation_timestamp"))
        tags = self._all_tags = version_tags.tags_of_row(row)
        self.tags = version_tags.own_tags(tags)
        self.properties = version_tags.properties_of(tags)
        self.model_framework, self.model_framework_version = version_tags.framework_of(tags)

    @staticmethod
    def register(
        workspace: Workspace,
        model_path: Any,
        model_name: str,
        tags: Mapping[str, Any] | None = None,
        properties: Mapping[str, Any] | None = None,
        description: str | None = None,
        datasets: Any = None,
        model_framework: Any = None,
        model_framework_version: Any = None,
        child_paths: Any = None,
        **_others: Any,
    ) -> Model:
        """Registers a file or folder of this machine as the next version of a model; of a folder only
        `child_paths`, if they are given. In a job its files become files of the run first. Returns the model.
        Raises UserErrorException for files that cannot be sent, and HubRefused."""
        from trainhub_azureml.models.registration import register_files

        others = {"datasets": datasets}
        all_tags = version_tags.version_tags(
            tags, properties, model_framework, model_framework_version, others
        )
        version = register_files(
            workspace, model_name, os.fspath(model_path), child_paths, description or "", all_tags
        )
        return Model(workspace, model_name, version=version)

    @staticmethod
    def list(
        workspace: Workspace,
        name: str | None = None,
        tags: Any = None,
        properties: Any = None,
        run_id: str | None = None,
        latest: bool = False,
        dataset_id: Any = None,
        expand: bool = True,
        page_count: int = 255,
        model_framework: str | None = None,
    ) -> list[Model]:
        """Returns the versions of all models, or of the one with this name, that fit; the newest come first.
        With `latest` only the newest of each name that fits."""
        if dataset_id is not None:
            raise UserErrorException("Model.list: dataset_id is not offered: give tags or properties.")
        rows = sorted(
            _matching(workspace, name, tags, properties, run_id, model_framework),
            key=lambda row: (int(row["creation_timestamp"]), int(row["version"])),
            reverse=True,
        )
        models: dict[Any, Model] = {}
        for row in rows:
            key = row["name"] if latest else (row["name"], row["version"])
            if key not in models:
                models[key] = model_of_row(workspace, row)
        return [*models.values()]

    @staticmethod
    def get_model_path(
        model_name: str, version: int | None = None, _workspace: Workspace | None = None
    ) -> str:
        """Returns the path of a model on this machine: a file, or a folder with its files. What is missing is
        fetched into `azureml-models/NAME/VERSION`, or into AZUREML_MODEL_DIR. Without a hub it must be there
        already. Raises ModelNotFoundException."""
        from trainhub_azureml.models.model_files import cached_version, folder_name, local_model_path
        from trainhub_azureml.workspace import Workspace

        number = None if version is None else _number(version)
        workspace = _workspace or Workspace._of_job()
        if workspace._client_or_none() is not None:
            try:
                model = Model(workspace, model_name, version=number)
            except ModelNotFoundException:
                pass  # it may be here
            else:
                content = model._content()
                return cached_version(content, folder_name(content, model._all_tags))
            where = "on the hub"
        else:
            where = "on a hub (none is known: sign in by trainhub login)"
        path = local_model_path(model_name, number)
        if path is None:
            what = model_name if number is None else f"{model_name}:{number}"
            raise ModelNotFoundException(f"There is no model {what} {where}, and none in this folder.")
        return path

    @property
    def id(self) -> str:
        return f"{self.name}:{self.version}"

    @property
    def url(self) -> str:
        return f"models:/{self.name}/{self.version}"

    @property
    def run(self) -> Run | None:
        """The run that has made it, None if the hub knows of none. Raises UserErrorException in a job, for
        another run than its own."""
        from trainhub_azureml.run import Run

        if self.run_id is None:
            return None
        context = Run.get_context()
        if context.id == self.run_id:
            job: Run = context
            return job
        if isinstance(context, Run):
            raise UserErrorException("Model.run: the token of a job reads its own run; use Model.run_id.")
        return Run.get(self.workspace, self.run_id)

    def download(self, target_dir: Any = ".", exist_ok: bool = False, exists_ok: bool | None = None) -> str:
        """Downloads its files into `target_dir`. Returns the path of its file, or of its folder there. Raises
        UserErrorException if a file is there already, unless `exist_ok`."""
        from trainhub_azureml.models.model_files import download_version, folder_name

        content = self._content()
        name = folder_name(content, self._all_tags)
        return download_version(content, name, os.fspath(target_dir), may_replace=bool(exist_ok or exists_ok))

    @staticmethod
    def deploy(*_arguments: Any, **_others: Any) -> Any:
        """Refused, like `package` and `profile`: there are no web services."""
        raise UserErrorException(name_sentence(_MODULE, "Model.deploy"))

    package = profile = deploy

    def serialize(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "version": self.version,
            "id": self.id,
            "createdTime": self.created_time.isoformat() if self.created_time else None,
            "runId": self.run_id,
            "framework": self.model_framework,
            "frameworkVersion": self.model_framework_version,
            "tags": self.tags,
            "properties": self.properties,
            "description": self.description,
        }

    def _content(self) -> ModelVersion:
        return self._calls().content(self.name, self.version)

    def __repr__(self) -> str:
        return f"Model(name={self.name}, id={self.id}, version={self.version})"


class InferenceConfig:
    """Refused when it is used: scripts import it beside `Model`."""

    def __init__(self, *_arguments: Any, **_others: Any) -> None:
        raise UserErrorException(name_sentence(_MODULE, "InferenceConfig"))


def model_of_row(workspace: Workspace, row: Mapping[str, Any]) -> Model:
    """Returns a model as MLflow's protocol describes its version, without asking the hub."""
    model = Model.__new__(Model)
    model._take(workspace, row)
    return model


def _matching(
    workspace: Workspace,
    name: str | None,
    tags: Any,
    properties: Any,
    run_id: str | None,
    framework: str | None,
    version: Any = None,
) -> Iterator[dict[str, Any]]:
    """Yields the versions that fit, as MLflow describes them."""
    number = None if version is None else _number(version)
    for row in RegistryCalls(workspace._client().api).versions(name, number, run_id):
        values = version_tags.tags_of_row(row)
        fits = version_tags.matches_list(version_tags.own_tags(values), tags)
        fits = fits and version_tags.matches_list(version_tags.properties_of(values), properties)
        if fits and framework in (None, version_tags.framework_of(values)[0]):
            yield row


def _number(version: Any) -> int:
    try:
        return int(version)
    except ValueError as error:
        raise UserErrorException(f"Model: version={version!r} must be a number.") from error


def _time(milliseconds: Any) -> datetime | None:
    return datetime.fromtimestamp(int(milliseconds) / 1000, timezone.utc) if milliseconds else None

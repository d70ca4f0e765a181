"""Registered models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainhub_sdk.addresses import escape
from trainhub_sdk.api_connection import ApiConnection
from trainhub_sdk.errors import NotFound, TrainHubError
from trainhub_sdk.records.registry import ModelRecord, ModelVersionRecord
from trainhub_sdk.transfers import download


class ModelVersion(ModelVersionRecord):
    """A version of a model; its fields are those of the API."""

    api: ApiConnection

    @classmethod
    def of(cls, api: ApiConnection, data: dict[str, Any]) -> ModelVersion:
        version = cls.from_json(data)
        version.api = api
        return version

    def download(self, to: str | Path = "", on_bytes: Callable[[int], None] = lambda _: None) -> list[Path]:
        """Downloads all its files into the folder `to`, by default one named for the model; `on_bytes` gets
        the length of each piece that arrives. Returns their paths. Raises TrainHubError for a name that leads
        out of the folder, and what downloads raise."""
        folder = Path(to or self.model)
        paths = []
        for file in self.files:
            path = folder / file.path
            if folder.resolve() not in path.resolve().parents:
                raise TrainHubError(f"{file.path!r} leads out of {folder}: it is not downloaded.")
            paths.append(download(self.api, file.url, path, file.sha256, on_bytes))
        return paths

    def __repr__(self) -> str:
        return f"<ModelVersion {self.model}:{self.version}>"


class Model(ModelRecord):
    """A registered model; its fields are those of the API."""

    api: ApiConnection

    @classmethod
    def of(cls, api: ApiConnection, data: dict[str, Any]) -> Model:
        model = cls.from_json(data)
        model.api = api
        return model

    def versions(self) -> list[ModelVersion]:
        """Returns its versions, the newest first."""
        rows = self.api.get(f"/api/v1/models/{escape(self.name)}/versions/")
        return [ModelVersion.of(self.api, row) for row in rows]

    def version(self, number_or_alias: int | str = "") -> ModelVersion:
        """Returns a version by its number or one of its aliases, by default the newest. Raises NotFound."""
        number = self.aliases.get(str(number_or_alias), number_or_alias) or self.latest_version
        path = f"/api/v1/models/{escape(self.name)}/versions/{escape(str(number))}/"
        try:
            return ModelVersion.of(self.api, self.api.get(path))
        except NotFound as error:
            others = ", ".join(
                ["1" if self.latest_version == 1 else f"1 to {self.latest_version}", *self.aliases]
            )
            message = f"{self.name} has no version {number}: it has {others}."
            raise NotFound(error.status, message, error.body) from error

    def __repr__(self) -> str:
        return f"<Model {self.name}>"

"""The calls of the registry in the name of a token, that of a person or of a job.

They are those of MLflow's protocol, because a job's token is not taken elsewhere: it reads all models of its
workspace, and changes the versions that its run has made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from trainhub_sdk.addresses import escape
from trainhub_sdk.models import ModelVersion

if TYPE_CHECKING:
    from trainhub_sdk.api_connection import ApiConnection

_VERSIONS = "/api/2.0/mlflow/model-versions"


class RegistryCalls:
    """All of them raise HubUnreachable and HubRefused."""

    def __init__(self, api: ApiConnection) -> None:
        self.api = api

    def versions(
        self, name: str | None = None, version: int | None = None, run_id: str | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yields the versions of a name, with a number or of a run, or all, as MLflow describes them."""
        values = {"name": name, "run_id": run_id}
        if any("'" in value for value in values.values() if value):
            return  # no name has it, and it would end the text in the filter
        conditions = [f"{key} = '{value}'" for key, value in values.items() if value]
        if version is not None:
            conditions.append(f"version_number = {version}")
        query: dict[str, Any] = {"filter": " AND ".join(conditions) or None}
        while True:
            page = self.api.get(f"{_VERSIONS}/search", **query)
            yield from page.get("model_versions") or ()
            query["page_token"] = page.get("next_page_token")
            if not query["page_token"]:
                return

    def content(self, name: str, version: int) -> ModelVersion:
        """Returns a version with its files, which its certificate names with their SHA-256."""
        address = f"/api/v1/models/{escape(name)}/versions/{version}"
        certificate = self.api.get(f"{address}/certificate")
        files = [{**file, "url": f"{address}/files/{escape(file['path'])}"} for file in certificate["files"]]
        source = certificate["model"]["source"]
        data = {"model": name, "version": version, "files": files, "source": source}
        return ModelVersion.of(self.api, data)

    def set_tag(self, name: str, version: int, key: str, value: str) -> None:
        body = {"name": name, "version": str(version), "key": key, "value": value}
        self.api.call("POST", f"{_VERSIONS}/set-tag", body)

    def delete_tag(self, name: str, version: int, key: str) -> None:
        body = {"name": name, "version": str(version), "key": key}
        self.api.call("DELETE", f"{_VERSIONS}/delete-tag", body)

    def describe(self, name: str, version: int, description: str) -> None:
        body = {"name": name, "version": str(version), "description": description}
        self.api.call("PATCH", f"{_VERSIONS}/update", body)

    def delete(self, name: str, version: int) -> None:
        """Deletes a version, which owners of the workspace may do."""
        self.api.call("DELETE", f"{_VERSIONS}/delete", {"name": name, "version": str(version)})

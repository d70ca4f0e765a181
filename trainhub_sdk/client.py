"""The entrance of the SDK: a hub as one person uses it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

from trainhub_sdk import profiles, source_folder
from trainhub_sdk.addresses import escape
from trainhub_sdk.api_connection import ApiConnection
from trainhub_sdk.errors import FolderTooLarge, NotFound, TrainHubError
from trainhub_sdk.models import Model, ModelVersion
from trainhub_sdk.records.data import Dataset, DatasetVersion, Datastore
from trainhub_sdk.records.environments import Environment
from trainhub_sdk.records.machines import Cluster, Node
from trainhub_sdk.records.people import Identity, UsageTotal
from trainhub_sdk.records.record import Record
from trainhub_sdk.records.runs import ExperimentSummary, Finding
from trainhub_sdk.run import Run
from trainhub_sdk.source_folder import DEFAULT_LIMITS, SourceLimits
from trainhub_sdk.spec import RunSpec
from trainhub_sdk.spec_formats import SpecFormats
from trainhub_sdk.uploads.dataset_upload import upload_folder
from trainhub_sdk.uploads.model_upload import model_files, upload_version

LAST = "@last"
ID_LENGTH = 32
# Of a list of runs in one answer.
MAX_PAGE = 500
T = TypeVar("T", bound=Record)


class Preview:
    """What would become of a spec now. `is_ok`: whether it could be submitted; `plan`: as the API describes
    it, None if there is none; `printed`: the same as text; `findings`: errors and warnings; `json`: all of it
    as it came."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.json = data
        self.is_ok = bool(data["ok"])
        self.plan: Any = data["plan"]
        self.printed = str(data["printed"])
        self.findings = [Finding.from_json(finding) for finding in data["findings"]]


class Client:
    """`url`: of the hub; `token`: one of the Settings page; `ca`: a file with the only authority to trust,
    "" = those of this machine. All methods raise HubUnreachable, and HubRefused with what the hub has
    answered."""

    def __init__(self, url: str, token: str, ca: str = "") -> None:
        self.api = ApiConnection(url, token, ca)

    @classmethod
    def from_profile(cls, name: str = "") -> Client:
        """Returns a client for a profile that `trainhub login` has made, by default the one in use. Raises
        NoProfile."""
        profile = profiles.choose_profile(name, {})
        return cls(profile.url, profile.token, profile.ca)

    @classmethod
    def from_env(cls) -> Client:
        """Returns a client for TRAINHUB_URL, TRAINHUB_TOKEN and TRAINHUB_CA_FILE, or for the profile that
        TRAINHUB_PROFILE names, or for the one in use. Raises NoProfile."""
        profile = profiles.choose_profile()
        return cls(profile.url, profile.token, profile.ca)

    @property
    def specs(self) -> SpecFormats:
        """Writes specs for other launchers, and makes specs of their files."""
        return SpecFormats(self)

    def whoami(self) -> Identity:
        """Returns who the token stands for, in which workspace, and what it may do."""
        return Identity.from_json(self.api.get("/api/v1/me/"))

    def submit(
        self,
        spec: RunSpec | Mapping[str, Any],
        folder: str | Path | None = None,
        *,
        idempotency_key: str = "",
        cloned_from: str = "",
    ) -> Run:
        """Submits a run of the source in `folder`, or of the one that the spec names. With the key of an
        earlier submission, that run is returned. `cloned_from`: the id of the run whose spec this was.
        Returns the run. Raises FolderRefused."""
        data = self._with_source(spec, folder)
        headers = {"Idempotency-Key": idempotency_key or uuid.uuid4().hex}
        query = {"cloned_from": cloned_from or None}
        row = self.api.call("POST", "/api/v1/runs/", data, query=query, headers=headers)
        return Run.of(self.api, row)

    def preview(self, spec: RunSpec | Mapping[str, Any], folder: str | Path | None = None) -> Preview:
        """Returns which plan a spec would get now, and its errors and warnings; no run is made. Raises
        FolderRefused."""
        data = self._with_source(spec, folder)
        return Preview(self.api.call("POST", "/api/v1/runs/preview/", data))

    def upload_folder(self, folder: str | Path, extra: Mapping[str, bytes] | None = None) -> str:
        """Stores a folder as the source of runs. `extra`: the content of further files by path. Returns the
        id of the snapshot. Raises FolderRefused."""
        with self._pack(Path(folder), extra) as packed:
            size = packed.seek(0, 2)
            packed.seek(0)
            headers = {"Content-Type": "application/zip", "Content-Length": str(size)}
            answer = self.api.open("POST", "/api/v1/snapshots/", body=packed, headers=headers, timeout=300)
            return str(answer.json()["id"])

    def _pack(self, folder: Path, extra: Mapping[str, bytes] | None) -> IO[bytes]:
        try:
            return source_folder.pack(folder, extra)
        except FolderTooLarge:
            # Asked only now, as few folders are so large: an operator may allow more.
            me = self.whoami()
            limits = SourceLimits(me.max_source_files, me.max_source_bytes)
            if limits.files <= DEFAULT_LIMITS.files and limits.size_bytes <= DEFAULT_LIMITS.size_bytes:
                raise
            return source_folder.pack(folder, extra, limits)

    def run(self, reference: str | int) -> Run:
        """Returns a run by its number, its id, the beginning of its id, or `@last`: your newest one. Raises
        NotFound."""
        text = str(reference).strip()
        if text == LAST:
            return self._last_run()
        try:
            return Run.of(self.api, self.api.get(f"/api/v1/runs/{escape(text)}/"))
        except NotFound as error:
            if text.isdigit() or not 4 <= len(text) < ID_LENGTH or set(text) - set("0123456789abcdef"):
                message = f"There is no run {text} in this workspace, or you may not see it."
                raise NotFound(error.status, message, error.body) from error
        matches = [run for run in self.runs(limit=1000) if run.id.startswith(text)]
        if len(matches) != 1:
            raise NotFound(
                404, f"{len(matches)} of the newest 1,000 runs have an id that begins with {text}.", {}
            )
        return matches[0].refresh()

    def runs(
        self, filter: str = "", *, order: str = "", limit: int | None = None, **query: str
    ) -> Iterator[Run]:
        """Yields runs, the newest first. `filter`, `order`: as on the page *Runs*; `query`: further
        parameters of the API, such as `state`, `experiment` or `created_by`."""
        size = min(limit, MAX_PAGE) if limit else None
        parameters = {"filter": filter or None, "order": order or None, "page_size": size, **query}
        for number, data in enumerate(self.api.pages("/api/v1/runs/", **parameters)):
            if limit is not None and number >= limit:
                return
            yield Run.of(self.api, data)

    def compare(self, *references: str | int) -> list[dict[str, Any]]:
        """Returns for each run its number, name, state, and metrics as `Run.metrics` has them. Raises
        NotFound."""
        ids = ",".join(self.run(reference).id for reference in references)
        return list(self.api.get("/api/v1/compare/metrics/", runs=ids)["runs"])

    def experiments(self, name: str = "") -> list[ExperimentSummary]:
        """Returns the experiments, or only the one of this name; those with the newest runs come first."""
        rows = self.api.pages("/api/v1/experiments/", name=name or None)
        return [ExperimentSummary.from_json(row) for row in rows]

    def models(self) -> list[Model]:
        """Returns all registered models."""
        return [Model.of(self.api, data) for data in self.api.pages("/api/v1/models/")]

    def model(self, name: str) -> Model:
        """Returns a registered model. Raises NotFound."""
        return Model.of(self.api, self.api.get(f"/api/v1/models/{escape(name)}/"))

    def upload_model(
        self,
        name: str,
        path: str | Path,
        *,
        description: str = "",
        tags: Mapping[str, str] | None = None,
    ) -> ModelVersion:
        """Registers a file or folder of this machine as the next version of the model. What the workspace has
        already is not sent, so an upload that broke off goes on where it was. Returns the version. Raises
        TrainHubError for files that cannot be sent."""
        return upload_version(self.api, name, model_files(path), description, tags)

    def upload_dataset(self, name: str, path: str | Path, *, datastore: str = "") -> DatasetVersion:
        """Makes a file or the files of a folder of this machine the next version of a dataset. What the
        workspace has already is not sent, so an upload that broke off goes on where it was. Without a dataset
        of this name it is made in `datastore`, by default the first one for uploaded files. Returns the
        version. Raises UploadError."""
        return upload_folder(self.api, name, path, datastore)

    def clusters(self) -> list[Cluster]:
        """Returns the clusters, with their free GPUs."""
        return self._list(Cluster, "/api/v1/clusters/")

    def nodes(self) -> list[Node]:
        """Returns the machines, with their GPUs."""
        return self._list(Node, "/api/v1/nodes/")

    def environments(self) -> list[Environment]:
        """Returns the environments that runs can name."""
        return self._list(Environment, "/api/v1/environments/")

    def datasets(self) -> list[Dataset]:
        """Returns the datasets, each with its newest version."""
        return self._list(Dataset, "/api/v1/datasets/")

    def datastores(self) -> list[Datastore]:
        """Returns the datastores, without their secrets."""
        return self._list(Datastore, "/api/v1/datastores/")

    def usage(self, by: str = "") -> list[UsageTotal]:
        """Returns what was used, grouped by `by`: `user`, `experiment`, `cluster`, `month` or `run`."""
        answer = self.api.get("/api/v1/usage/", by=by or None)
        return [UsageTotal.from_json(line) for line in answer["results"]]

    def close(self) -> None:
        """Closes the connections. The next call opens a new one."""
        self.api.close()

    def _with_source(self, spec: RunSpec | Mapping[str, Any], folder: str | Path | None) -> dict[str, Any]:
        data = spec.to_json() if isinstance(spec, RunSpec) else dict(spec)
        if folder is not None:
            if data.get("source"):
                raise TrainHubError("source: the spec names one already, so leave the folder out.")
            data["source"] = {"type": "snapshot", "id": self.upload_folder(folder)}
        return data

    def _last_run(self) -> Run:
        me = self.whoami()
        for run in self.runs(limit=1, created_by=me.user):
            return run.refresh()
        raise NotFound(404, "You have not submitted a run in this workspace yet.", {})

    def _list(self, kind: type[T], path: str) -> list[T]:
        return [kind.from_json(data) for data in self.api.pages(path)]

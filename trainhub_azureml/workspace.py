"""A workspace: the one of the hub in which the user's token acts, under the name that the script knows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trainhub_azureml.exceptions import AuthenticationException, UserErrorException
from trainhub_azureml.local_files import config_file
from trainhub_azureml.local_files.config_file import WorkspaceConfig
from trainhub_azureml.notices import warn

if TYPE_CHECKING:
    from trainhub_azureml.compute import AmlCompute
    from trainhub_azureml.data.datasets import AbstractDataset
    from trainhub_azureml.data.datastore import Datastore
    from trainhub_azureml.environment import Environment
    from trainhub_azureml.experiment import Experiment
    from trainhub_azureml.local_files.mapping import NameMapping
    from trainhub_azureml.models.model import Model
    from trainhub_azureml.run import Run
    from trainhub_azureml.submission.run_spec import HubFacts
    from trainhub_sdk.client import Client
    from trainhub_sdk.records.environments import Environment as HubEnvironment

LOCATION = "trainhub"
_JOB_NAME = "AZUREML_ARM_WORKSPACE_NAME"


class Workspace:
    """`subscription_id`, `resource_group` and `location` have no meaning on a hub; they are always
    strings."""

    def __init__(
        self,
        subscription_id: str = "",
        resource_group: str = "",
        workspace_name: str = "",
        auth: Any = None,
        _location: str | None = None,
        **_others: Any,
    ) -> None:
        self.name = str(workspace_name or LOCATION)
        self.subscription_id = str(subscription_id or LOCATION)
        self.resource_group = str(resource_group or LOCATION)
        self.location = str(_location or LOCATION)
        self.sku = "Basic"
        self.tags: dict[str, str] = {}
        self._open_client: Client | None = None
        self._name_mapping: NameMapping | None = None

    @staticmethod
    def from_config(
        path: Any = None, auth: Any = None, _logger: Any = None, _file_name: str | None = None
    ) -> Workspace:
        """Returns the workspace that `config.json` names, looked for in `.azureml`, `.` and `aml_config` of
        the current folder (or of `path`) and of those above it. Without such a file it has the name that the
        hub gives it. Raises UserErrorException for a path that does not exist, or a wrong file."""
        file = config_file.find_config(path, _file_name)
        if file:
            return Workspace(*config_file.read_config(file))
        workspace = Workspace()
        client = workspace._client_or_none()
        if client is None:
            raise UserErrorException(
                "There is no config.json here or above, and no hub is known: sign in by trainhub login, or "
                "set TRAINHUB_URL and TRAINHUB_TOKEN."
            )
        workspace.name = client.whoami().workspace or LOCATION
        warn(f"There is no config.json here or above: the workspace is {workspace.name}, that of your token.")
        return workspace

    @staticmethod
    def get(
        name: str,
        auth: Any = None,
        subscription_id: str | None = None,
        resource_group: str | None = None,
        location: str | None = None,
        **_others: Any,
    ) -> Workspace:
        return Workspace(subscription_id or "", resource_group or "", name, _location=location)

    @staticmethod
    def create(
        name: str,
        auth: Any = None,
        subscription_id: str | None = None,
        resource_group: str | None = None,
        location: str | None = None,
        **_others: Any,
    ) -> Workspace:
        """Returns the workspace of the token: operators make workspaces, on the pages of the hub."""
        warn(f"The workspace {name} is not made: runs go to the workspace of your token.")
        return Workspace(subscription_id or "", resource_group or "", name, _location=location)

    _get_or_create = create  # private in the SDK v1, and used by published examples

    @staticmethod
    def setup() -> Workspace:
        return Workspace.from_config()

    @classmethod
    def _of_job(cls) -> Workspace:
        """The workspace of the job of this process, as the job's variables name it."""
        return cls("", "", os.environ.get(_JOB_NAME, ""))

    def write_config(self, path: Any = None, file_name: str | None = None) -> None:
        """Writes `.azureml/config.json` into the folder `path`, by default the current one."""
        config = WorkspaceConfig(self.subscription_id, self.resource_group, self.name)
        config_file.write_config(config, os.fspath(path or "."), file_name or config_file.NAME)

    @property
    def compute_targets(self) -> Mapping[str, AmlCompute]:
        """The clusters of the hub by name, and the names of the mapping file. Another name means what it does
        for ComputeTarget."""
        from trainhub_azureml.compute import AmlCompute, ComputeTargets

        names = [*(cluster.name for cluster in self._client().clusters()), *self._mapping().compute]
        return ComputeTargets(self, {name: AmlCompute(self, name) for name in names})

    def get_default_compute_target(self, type: str = "CPU") -> AmlCompute | None:
        targets = list(self.compute_targets.values())
        return targets[0] if len(targets) == 1 else None

    @property
    def datastores(self) -> Mapping[str, Datastore]:
        """The datastores of the hub by name, and the names of the mapping file."""
        from trainhub_azureml.data.datastore import Datastore

        names = [*(row.name for row in self._client().datastores()), *self._mapping().datastores]
        return {name: Datastore(self, name) for name in names}

    def get_default_datastore(self) -> Datastore:
        """Returns the one that the mapping file names for workspaceblobstore, else that of this name on the
        hub, else the one for uploaded files, which is made if there is none."""
        from trainhub_azureml.data.datastore import Datastore

        return Datastore(self)

    @property
    def datasets(self) -> Mapping[str, AbstractDataset]:
        """The registered datasets by name, each in its newest version."""
        from trainhub_azureml.data.dataset import Dataset

        return Dataset.get_all(self)

    @property
    def environments(self) -> Mapping[str, Environment]:
        from trainhub_azureml.environment import Environment

        return Environment.list(self)

    @property
    def experiments(self) -> Mapping[str, Experiment]:
        from trainhub_azureml.experiment import Experiment

        return {experiment.name: experiment for experiment in Experiment.list(self)}

    @property
    def models(self) -> Mapping[str, Model]:
        """The registered models by name, each in its newest version."""
        from trainhub_azureml.models.model import Model

        return {model.name: model for model in Model.list(self, latest=True)}

    def get_run(self, run_id: str) -> Run:
        from trainhub_azureml.run import Run

        return Run.get(self, run_id)

    def get_details(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "id": self.subscription_id,
            "location": self.location,
            "resourceGroup": self.resource_group,
            "discoveryUrl": self._client().api.url,
        }

    def get_mlflow_tracking_uri(self, with_auth: bool = False) -> str:
        """Returns the address of the hub. MLflow's client gets the token by a variable of this process, never
        in the address, which is printed."""
        from trainhub_sdk.profiles import choose_profile

        profile = choose_profile()
        os.environ.setdefault("MLFLOW_TRACKING_TOKEN", profile.token)
        if profile.ca:
            os.environ.setdefault("MLFLOW_TRACKING_SERVER_CERT_PATH", profile.ca)
        return profile.url

    def _client(self) -> Client:
        """Returns the client of the hub. Raises AuthenticationException if no hub is known."""
        from trainhub_sdk.client import Client
        from trainhub_sdk.errors import NoProfile

        if self._open_client is None:
            try:
                self._open_client = Client.from_env()
            except NoProfile as error:
                raise AuthenticationException(str(error), error) from error
        return self._open_client

    def _client_or_none(self) -> Client | None:
        """Returns None if no hub is known, which suffices for a dry run."""
        try:
            return self._client()
        except AuthenticationException:
            return None

    def _mapping(self) -> NameMapping:
        from trainhub_azureml.local_files.mapping import load_mapping

        if self._name_mapping is None:
            self._name_mapping = load_mapping()
        return self._name_mapping

    def _environments(self) -> Sequence[HubEnvironment]:
        client = self._hub()
        return client.environments() if client else ()

    def _facts(self) -> HubFacts:
        """Returns what the hub has now. Raises AuthenticationException if no hub is known, unless this is a
        dry run."""
        from trainhub_azureml.submission.run_spec import HubFacts

        client = self._hub()
        if client is None:
            return HubFacts()
        return HubFacts(client.clusters(), client.nodes(), client.environments())

    def _hub(self) -> Client | None:
        from trainhub_azureml.submission.dry_run import is_dry_run

        return self._client_or_none() if is_dry_run() else self._client()

    def __repr__(self) -> str:
        return f"Workspace(name={self.name!r}, resource_group={self.resource_group!r})"

    def _repr_html_(self) -> str:
        import html

        client = self._client_or_none()
        link = html.escape(client.api.url) if client else ""
        return f'<b>{html.escape(self.name)}</b> on <a href="{link}" target="_blank">{link}</a>'

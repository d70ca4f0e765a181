"""Datastores: named places for data."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from trainhub_azureml.data.data_files import DataFile, OnDisk, clean_path, fetch, files_below
from trainhub_azureml.data.data_reference import DataReference
from trainhub_azureml.data.dry_run_data import add_files, added_files
from trainhub_azureml.data.refused_members import RefusedMembers
from trainhub_azureml.data.store_kinds import AZURE_BLOB, FOLDER, HUB, READY
from trainhub_azureml.exceptions import UserErrorException
from trainhub_azureml.notices import warn
from trainhub_azureml.submission.dry_run import is_dry_run

if TYPE_CHECKING:
    from trainhub_azureml.workspace import Workspace

# Behind the name of a datastore for uploaded files: the dataset with all that was uploaded into it.
TREE = ".files"
DEFAULT = "workspaceblobstore"
ACCOUNT = "trainhub"
_KINDS = {AZURE_BLOB: "AzureBlob", HUB: "AzureBlob"}


class Datastore(RefusedMembers):
    """A datastore by its name, by default the default one. Raises UserErrorException if the hub has none that
    is meant."""

    def __init__(self, workspace: Workspace, name: str | None = None) -> None:
        from trainhub_azureml.data.datastore_choice import choose_datastore
        from trainhub_azureml.data.hub_data import HubData

        self.workspace = workspace
        self.name = str(name or DEFAULT)
        client = workspace._hub()
        self._hub_data = HubData(client) if client is not None else None
        mapping = workspace._mapping()
        self._row = choose_datastore(self._hub_data, self.name, mapping, is_dry_run=is_dry_run())
        # Scripts put both into sentences, so that they are texts also where they have no meaning.
        self.container_name = self._row.container or self._row.name
        self.account_name = self._row.account or ACCOUNT

    @staticmethod
    def get(workspace: Workspace, datastore_name: str) -> Datastore:
        return Datastore(workspace, datastore_name)

    @staticmethod
    def get_default(workspace: Workspace) -> Datastore:
        return Datastore(workspace)

    @staticmethod
    def register_azure_blob_container(
        workspace: Workspace,
        datastore_name: str,
        container_name: str,
        account_name: str,
        sas_token: str | None = None,
        account_key: str | None = None,
        protocol: str | None = None,
        endpoint: str | None = None,
        overwrite: bool = False,
        **_others: Any,
    ) -> Datastore:
        """Adds a container to the hub, with its credentials as a secret of the workspace; without any it is
        read as a public one. Raises UserErrorException if the hub has another datastore of this name."""
        from trainhub_azureml.data.hub_data import HubData

        hub = HubData(workspace._client())
        fields = {"account": account_name, "container": container_name}
        if endpoint:
            host = endpoint if endpoint.startswith(account_name) else f"{account_name}.blob.{endpoint}"
            fields["endpoint"] = f"{protocol or 'https'}://{host}"
        existing = next((row for row in hub.datastores() if row.name == datastore_name), None)
        if existing is not None and (existing.account, existing.container) != (account_name, container_name):
            raise UserErrorException(
                f"register_azure_blob_container: the hub has another datastore {datastore_name}; give "
                "another name."
            )
        if is_dry_run():
            warn(f"The datastore {datastore_name} is not made in a dry run.")
            return Datastore(workspace, datastore_name if existing is not None else None)
        credential = sas_token or account_key
        if credential:
            fields["secret"] = (
                existing.secret if existing and existing.secret else f"{datastore_name[:60]}-key"
            )
            if existing is None and hub.has_secret(fields["secret"]):
                raise UserErrorException(
                    f"register_azure_blob_container: the hub has a secret {fields['secret']} already, which "
                    "something else may use: add the datastore on the page Data, or delete the secret in "
                    "Settings."
                )
            hub.store_secret(fields["secret"], credential.lstrip("?"))
        if existing is None:
            hub.make_datastore(datastore_name, AZURE_BLOB, **fields)
        elif credential and not existing.secret:
            hub.change_datastore(datastore_name, sign_in="secret", secret=fields["secret"])
        return Datastore(workspace, datastore_name)

    @property
    def datastore_type(self) -> str:
        return _KINDS.get(self._row.kind, self._row.kind)

    def path(self, path: str | None = None, data_reference_name: str | None = None) -> DataReference:
        """Returns a reference to a file or folder of it, as an argument of a run."""
        return DataReference(self, data_reference_name, path)

    def as_mount(self) -> DataReference:
        return self.path().as_mount()

    def as_download(self, path_on_compute: str | None = None) -> DataReference:
        return self.path().as_download(path_on_compute)

    def upload(
        self,
        src_dir: Any,
        target_path: str | None = None,
        overwrite: bool = False,
        show_progress: bool = True,
    ) -> DataReference:
        """Uploads a folder. Files that are there stay as they are, unless `overwrite`. Raises
        UserErrorException for a folder that does not exist, and for a datastore that is a store elsewhere."""
        folder = os.fspath(src_dir)
        if not os.path.isdir(folder):
            raise UserErrorException(f"upload: {folder} is not a folder.")
        return self._upload(files_below(folder), target_path, overwrite, show_progress)

    def upload_files(
        self,
        files: Iterable[Any],
        relative_root: Any = None,
        target_path: str | None = None,
        overwrite: bool = False,
        show_progress: bool = True,
    ) -> DataReference:
        """Uploads files; their paths below `relative_root`, by default the folder that they have in common,
        are kept. Raises UserErrorException as `upload` does."""
        paths = [os.path.abspath(os.fspath(file)) for file in files]
        missing = next((path for path in paths if not os.path.isfile(path)), None)
        if missing is not None or not paths:
            raise UserErrorException(f"upload_files: there is no file {missing or 'in the list'}.")
        root = relative_root or os.path.commonpath([os.path.dirname(path) for path in paths])
        rows = [
            DataFile(clean_path(os.path.relpath(path, os.path.abspath(root))), OnDisk(path)) for path in paths
        ]
        return self._upload(rows, target_path, overwrite, show_progress)

    def download(
        self, target_path: Any, prefix: str | None = None, overwrite: bool = False, show_progress: bool = True
    ) -> int:
        """Downloads the files whose path begins with `prefix` into the folder `target_path`. Returns how many
        they are. Raises UserErrorException for a store that this machine cannot read."""
        folder, start = os.fspath(target_path), clean_path(prefix or "")
        files = [file for file in self._files() if file.path.startswith(start)]
        for file in files:
            if overwrite or not os.path.exists(os.path.join(folder, file.path)):
                fetch(self._hub_data, file, folder)
        return len(files)

    def _files(self) -> list[DataFile]:
        """Returns all files of it. Raises UserErrorException for a store that this machine cannot read."""
        added = added_files(self._row.name)
        if self._row.kind == HUB:
            files = self._tree()
        elif self._row.kind == FOLDER and os.path.isdir(self._row.path):
            files = {file.path: file for file in files_below(self._row.path)}
        elif added and not self._row.kind:  # no hub was asked
            files = {}
        else:
            raise UserErrorException(self._refusal("read"))
        return list({**files, **added}.values())

    def _tree(self) -> Mapping[str, DataFile]:
        """Returns what was uploaded into it, by the path."""
        from trainhub_azureml.data.publication import version_files

        hub, name = self._hub_data, self._tree_name
        dataset = hub.dataset(name) if hub is not None else None
        if hub is None or dataset is None or dataset.newest is None or dataset.newest.state != READY:
            return {}
        return {file.path: file for file in version_files(hub, self._row, dataset, dataset.newest.version)}

    @property
    def _tree_name(self) -> str:
        return f"{self._row.name}{TREE}"

    def _upload(
        self, files: Iterable[DataFile], target: str | None, overwrite: bool, show_progress: bool
    ) -> DataReference:
        from trainhub_azureml.data.publication import publish

        base = clean_path(target or "")
        rows = [file._replace(path=posixpath.join(base, file.path)) for file in files]
        reference = self.path(base)
        if is_dry_run():
            warn(f"{len(rows)} files are not uploaded to {self.name}/{base} in a dry run.")
            add_files(self._row.name, rows)
            return reference
        if self._row.kind == FOLDER and os.path.isdir(self._row.path):
            present = {row.path for row in rows if os.path.exists(os.path.join(self._row.path, row.path))}
            rows = self._without(rows, set() if overwrite else present, show_progress)
            for row in rows:
                fetch(None, row, self._row.path)
        elif self._row.kind == HUB and self._hub_data is not None:
            tree = self._tree()
            rows = self._without(rows, set() if overwrite else set(tree), show_progress)
            tree = {**tree, **{row.path: row for row in rows}}
            publish(self._hub_data, self._row.name, self._tree_name, tree.values())
        else:
            raise UserErrorException(self._refusal("write"))
        if show_progress:
            print(f"Uploaded {len(rows)} files to {self.name}/{base}", flush=True)
        return reference

    def _without(self, rows: list[DataFile], present: set[str], show_progress: bool) -> list[DataFile]:
        if show_progress:
            for row in rows:
                if row.path in present:
                    print(f"{row.path} is there already, and stays as it is.", flush=True)
        return [row for row in rows if row.path not in present]

    def _refusal(self, what: str) -> str:
        row = self._row
        if row.kind == FOLDER:
            return (
                f"The datastore {self.name} is the folder {row.path} of the nodes, which this machine does "
                f"not have: {what} it there, in a run or on a node."
            )
        return (
            f"The datastore {self.name} is of the kind {row.kind}, which this machine does not {what}: "
            f"{what} it in a run, or by its own tools."
        )

    def __repr__(self) -> str:
        return f"Datastore(name={self.name!r}, datastore_type={self.datastore_type!r})"

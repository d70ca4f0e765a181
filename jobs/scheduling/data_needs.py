"""What the data of waiting runs needs of the nodes that get them."""

from __future__ import annotations

from datastores.run_inputs import look_up
from trainhub_launch.scheduler.data_room import DataLists
from trainhub_launch.spec import DataInput, RunSpec
from workspaces.models import Workspace


class DataNeeds:
    """Remembers what it has looked up: many waiting runs read the same."""

    def __init__(self) -> None:
        self._lists: dict[tuple[int, frozenset[tuple[str, DataInput]]], DataLists] = {}

    def lists_of(self, spec: RunSpec, workspace: Workspace) -> DataLists:
        """Returns the lists of files that each node of the run downloads; of what it downloads without a
        list, the size is not known. No query without inputs."""
        key = (workspace.pk, frozenset(spec.inputs.items()))
        if key not in self._lists:
            places = look_up(spec, workspace)
            self._lists[key] = frozenset(
                (places.downloads[name].list_key, version.bytes)
                for name, version in places.versions.items()
                if name in places.downloads
            )
        return self._lists[key]

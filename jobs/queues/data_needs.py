"""What the data of waiting runs needs of the nodes that get them."""

from __future__ import annotations

from datastores.run_inputs import InputPlaces, look_up
from trainhub_launch.machine import MOUNTS
from trainhub_launch.scheduler.data_room import DataLists
from trainhub_launch.spec import DataInput, RunSpec
from workspaces.models import Workspace


class DataNeeds:
    """Remembers what it has looked up: many waiting runs read the same."""

    def __init__(self) -> None:
        self._places: dict[tuple[int, frozenset[tuple[str, DataInput]]], InputPlaces] = {}

    def lists_of(self, spec: RunSpec, workspace: Workspace) -> DataLists:
        """Returns the lists of files that each node of the run downloads; of what it downloads without a
        list, the size is not known. No query without inputs."""
        places = self._look_up(spec, workspace)
        return frozenset(
            (places.downloads[name].list_key, version.bytes)
            for name, version in places.versions.items()
            if name in places.downloads
        )

    def capabilities_of(self, spec: RunSpec, workspace: Workspace) -> frozenset[str]:
        """Returns what nodes must be able to do because of where the data lies. No query without inputs."""
        return frozenset({MOUNTS}) if self._look_up(spec, workspace).mounts else frozenset()

    def _look_up(self, spec: RunSpec, workspace: Workspace) -> InputPlaces:
        key = (workspace.pk, frozenset(spec.inputs.items()))
        if key not in self._places:
            self._places[key] = look_up(spec, workspace)
        return self._places[key]

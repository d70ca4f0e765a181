"""Compute targets: the clusters of the hub. Scripts find them by name; none is made or removed here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Dict

from trainhub_azureml.exceptions import ComputeTargetException
from trainhub_azureml.notices import warn

if TYPE_CHECKING:
    from trainhub_azureml.workspace import Workspace
    from trainhub_sdk.records.machines import Node


class AmlComputeProvisioningConfiguration:
    """What a script would have made. A hub has the machines that it has."""

    def __init__(self, vm_size: str = "", max_nodes: int = 1, **others: Any) -> None:
        self.vm_size = vm_size
        self.max_nodes = max_nodes
        self.min_nodes = others.get("min_nodes", 0)
        self.others = others

    def validate_configuration(self) -> None:
        """Any is accepted."""


class AmlComputeStatus:
    """The nodes of a cluster now."""

    def __init__(self, cluster: str, nodes: list[Node]) -> None:
        self.cluster = cluster
        ready = [node for node in nodes if node.status == "ready"]
        self.current_node_count = self.target_node_count = len(ready)
        self.node_state_counts = {"ready": len(ready), "other": len(nodes) - len(ready)}
        self.allocation_state = "Steady"
        self.provisioning_state = "Succeeded"
        self.errors: list[Any] = []

    def serialize(self) -> dict[str, Any]:
        return {
            "currentNodeCount": self.current_node_count,
            "targetNodeCount": self.target_node_count,
            "nodeStateCounts": self.node_state_counts,
            "allocationState": self.allocation_state,
            "provisioningState": self.provisioning_state,
            "cluster": self.cluster,
            "errors": None,
        }

    def __repr__(self) -> str:
        return f"AmlComputeStatus({self.serialize()})"


class ComputeTarget:
    """A cluster, by its name in the script. `cluster`: its name on the hub. Raises ComputeTargetException if
    the hub has no such."""

    type = "AmlCompute"
    provisioning_state = "Succeeded"
    provisioning_errors = None

    def __new__(cls, workspace: Workspace, name: str, **_others: Any) -> Any:
        return super().__new__(AmlCompute if cls is ComputeTarget else cls)

    def __init__(self, workspace: Workspace, name: str, **_others: Any) -> None:
        from trainhub_azureml.submission.placement import choose_target

        self.workspace = workspace
        self.name = name
        self.tags: dict[str, str] = {}
        client = workspace._hub()
        clusters = client.clusters() if client else None
        target = choose_target(name, workspace._mapping(), clusters)
        if target is None:
            names = ", ".join(cluster.name for cluster in clusters or ()) or "none"
            raise ComputeTargetException(
                f"There is no cluster {name} on the hub; there are: {names}. Map it by "
                f'[compute."{name}"] in trainhub-azureml.toml.'
            )
        if target.note:
            warn(target.note)
        self.cluster = target.cluster

    @staticmethod
    def create(workspace: Workspace, name: str, provisioning_configuration: Any) -> AmlCompute:
        """Returns the cluster that the name means: machines join a hub by themselves. Raises
        ComputeTargetException if it means none."""
        target = AmlCompute(workspace, name)
        size = getattr(provisioning_configuration, "vm_size", "")
        warn(f"No machines {size} are made for {name}: runs go to the cluster {target.cluster}.")
        return target

    @staticmethod
    def list(workspace: Workspace) -> list[AmlCompute]:
        return [*workspace.compute_targets.values()]

    def wait_for_completion(
        self,
        show_output: bool = False,
        min_node_count: int | None = None,
        timeout_in_minutes: float | None = None,
        is_delete_operation: bool = False,
    ) -> None:
        """Returns at once: a cluster of a hub is ready, and runs wait for its nodes."""
        if show_output:
            print(f"The cluster {self.cluster} is ready.", flush=True)

    def get_status(self) -> AmlComputeStatus:
        return AmlComputeStatus(self.cluster, self._nodes())

    @property
    def status(self) -> AmlComputeStatus:
        return self.get_status()

    def refresh_state(self) -> None:
        """There is nothing that is not asked anew."""

    def list_nodes(self) -> Any:
        return [
            {"nodeId": node.name, "ipAddress": node.address, "nodeState": node.status}
            for node in self._nodes()
        ]

    def serialize(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.type,
            "cluster": self.cluster,
            **self.get_status().serialize(),
        }

    def delete(self) -> None:
        """Does nothing: the machines of a cluster belong to the team."""
        warn(f"The cluster {self.cluster} is not removed: operators do that, on the hub's pages.")

    def update(self, *_values: Any, **_others: Any) -> None:
        warn(f"The cluster {self.cluster} is not changed: operators do that, on the hub's pages.")

    def _nodes(self) -> Any:
        return [node for node in self.workspace._client().nodes() if node.cluster == self.cluster]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r}, cluster={self.cluster!r})"


class AmlCompute(ComputeTarget):
    @staticmethod
    def provisioning_configuration(
        vm_size: str = "",
        vm_priority: str = "dedicated",
        min_nodes: int = 0,
        max_nodes: int = 1,
        **others: Any,
    ) -> AmlComputeProvisioningConfiguration:
        """Returns a configuration for `ComputeTarget.create`."""
        return AmlComputeProvisioningConfiguration(
            vm_size, max_nodes, vm_priority=vm_priority, min_nodes=min_nodes, **others
        )

    @staticmethod
    def supported_vmsizes(workspace: Workspace, **_others: Any) -> Any:
        """Returns one entry for each GPU model of the hub."""
        models: Mapping[str, Any] = {
            str(model.get("name")): model
            for cluster in workspace._client().clusters()
            for model in cluster.gpu_models
        }
        return [{"name": name, "gpus": model.get("count", 0)} for name, model in models.items()]


class NoComputeTarget(ComputeTargetException, KeyError):
    """What `compute_targets[NAME]` raises: scripts expect the KeyError of a dict."""

    __str__ = Exception.__str__  # KeyError would put the sentence in quotation marks


class ComputeTargets(Dict[str, AmlCompute]):
    """The clusters by name. `[NAME]` of another name means what `ComputeTarget(workspace, NAME)` does."""

    def __init__(self, workspace: Workspace, targets: Mapping[str, AmlCompute]) -> None:
        super().__init__(targets)
        self._workspace = workspace

    def __missing__(self, name: str) -> AmlCompute:
        try:
            return AmlCompute(self._workspace, name)
        except ComputeTargetException as error:
            raise NoComputeTarget(str(error)) from error

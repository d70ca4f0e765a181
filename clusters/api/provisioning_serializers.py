from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from clusters.api.serializers import ClusterSerializer
from clusters.api.slurm_serializers import PartitionSerializer, SlurmStatusSerializer
from clusters.kinds import SLURM
from clusters.models import Cluster, ClusterEvent, ProvidedMachine, SlurmPartition
from clusters.overview import ClusterCard
from clusters.provisioning import cluster_admin, cluster_journal, machines
from clusters.slurm_partitions.partition_settings import settings_values


class SettingsSerializer(serializers.Serializer[Mapping[str, object]]):
    """The settings of a cluster; see docs/clusters.md."""

    kind = serializers.CharField(
        max_length=16,
        required=False,
        help_text="agent: its nodes run TrainHub's agent, the default; slurm: it is a partition of a Slurm. "
        "It cannot be changed.",
    )
    slurm = PartitionSerializer(
        required=False, allow_null=True, help_text="The partition, for the kind slurm; null otherwise."
    )
    description = serializers.CharField(max_length=200, allow_blank=True, required=False)
    workspaces = serializers.ListField(
        child=serializers.SlugField(),
        required=False,
        help_text=(
            "The slugs of the workspaces that may use the cluster; an empty list means all workspaces."
        ),
    )
    provider = serializers.SlugField(
        allow_blank=True,
        required=False,
        help_text=(
            "The provider that creates the cluster's nodes: the name of a folder in NODE_PROVIDERS. If "
            "empty, nodes are added manually."
        ),
    )
    min_nodes = serializers.IntegerField(min_value=0, max_value=cluster_admin.MAX_NODES, required=False)
    max_nodes = serializers.IntegerField(min_value=0, max_value=cluster_admin.MAX_NODES, required=False)
    idle_s = serializers.IntegerField(min_value=0, max_value=cluster_admin.MAX_IDLE_S, required=False)
    node_gpus = serializers.IntegerField(min_value=0, max_value=cluster_admin.MAX_GPUS, required=False)
    node_gpu_model = serializers.CharField(max_length=64, allow_blank=True, required=False)
    node_slots = serializers.IntegerField(min_value=0, max_value=cluster_admin.MAX_SLOTS, required=False)
    low_priority = serializers.BooleanField(required=False)
    avoid_unhealthy_gpus = serializers.BooleanField(
        required=False, help_text="Whether a GPU with a critical alert gets no new run until it clears."
    )

    def validate(self, attrs: dict[str, object]) -> dict[str, object]:
        # REST framework ignores unknown fields. A misspelt setting would look as if it had been changed.
        unknown = sorted(set(self.initial_data) - set(self.fields))
        if unknown:
            raise serializers.ValidationError(
                {unknown[0]: f"is not a setting of a cluster; the settings are: {', '.join(self.fields)}"}
            )
        return attrs


class NewClusterSerializer(SettingsSerializer):
    name = serializers.CharField(max_length=50)


class MachineSerializer(serializers.Serializer[ProvidedMachine | Sequence[ProvidedMachine]]):
    """A machine of the cluster's provider."""

    name = serializers.CharField()
    state = serializers.CharField(
        help_text="The machine's state: wanted, provisioning, joining, up or releasing."
    )
    id = serializers.CharField(source="provider_id", help_text="The provider's id of the machine.")
    error = serializers.CharField()
    asked_at = serializers.DateTimeField()
    changed_at = serializers.DateTimeField()
    try_again_at = serializers.DateTimeField(allow_null=True)


class ClusterEventSerializer(serializers.Serializer[ClusterEvent | Sequence[ClusterEvent]]):
    at = serializers.DateTimeField()
    kind = serializers.CharField()
    message = serializers.CharField()
    actor = serializers.CharField()


class ClusterDetailSerializer(ClusterSerializer):
    """A cluster with its settings, the machines of its provider, and its journal, the latest event first."""

    settings = serializers.SerializerMethodField()
    slurm = serializers.SerializerMethodField(help_text="The partition of a Slurm that it is, or null.")
    slurm_status = serializers.SerializerMethodField(help_text="What is known about that Slurm, or null.")
    drained_at = serializers.DateTimeField(source="cluster.drained_at", allow_null=True)
    machines = serializers.SerializerMethodField()
    events = serializers.SerializerMethodField()

    # drf-spectacular derives the schema of these three from their return types; `object` would become a
    # string.
    def get_settings(self, card: ClusterCard) -> dict[str, Any]:
        cluster: Cluster = card.cluster
        slugs = list(cluster.workspaces.order_by("slug").values_list("slug", flat=True))
        return {**{name: getattr(cluster, name) for name in cluster_admin.SETTINGS}, "workspaces": slugs}

    @extend_schema_field(PartitionSerializer(allow_null=True))
    def get_slurm(self, card: ClusterCard) -> dict[str, Any] | None:
        row = _partition(card.cluster)
        return None if row is None else dict(PartitionSerializer(settings_values(row)).data)

    @extend_schema_field(SlurmStatusSerializer(allow_null=True))
    def get_slurm_status(self, card: ClusterCard) -> dict[str, Any] | None:
        row = _partition(card.cluster)
        return None if row is None else dict(SlurmStatusSerializer(row).data)

    def get_machines(self, card: ClusterCard) -> list[dict[str, Any]]:
        return list(MachineSerializer(machines.active(card.cluster), many=True).data)

    def get_events(self, card: ClusterCard) -> list[dict[str, Any]]:
        return list(ClusterEventSerializer(cluster_journal.recent(card.cluster), many=True).data)


def _partition(cluster: Cluster) -> SlurmPartition | None:
    return SlurmPartition.objects.filter(cluster=cluster).first() if cluster.kind == SLURM else None


class SwitchSerializer(serializers.Serializer[Mapping[str, bool]]):
    on = serializers.BooleanField()


class RemovalSerializer(serializers.Serializer[Mapping[str, bool]]):
    force = serializers.BooleanField(
        default=False, help_text="Remove the node even if runs are on it. These runs end as lost."
    )

from __future__ import annotations

from collections.abc import Mapping, Sequence

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from clusters.enrolment.join import default_cluster_name
from clusters.gpus.gpu_cells import GpuCell, LeaseSummary
from clusters.gpus.gpu_models import ModelCount, count_models
from clusters.gpus.gpu_process_list import GpuProcessRow, process_lines
from clusters.overview import ClusterCard, NodeCard
from trainhub_launch.gpus.catalogue import GpuModel


class LeaseSerializer(serializers.Serializer[LeaseSummary]):
    """A lease of GPUs or slots to a run. The run of another workspace appears only as busy."""

    run = serializers.CharField(
        source="holder", help_text="The run's id; empty for a run of another workspace."
    )
    title = serializers.CharField(
        source="label", help_text="The run, such as 'run 41'; 'busy' for a run of another workspace."
    )
    gpus = serializers.ListField(child=serializers.CharField())
    slots = serializers.IntegerField()
    since = serializers.DateTimeField()


class GpuSerializer(serializers.Serializer[GpuCell]):
    """A GPU and its latest measurements; null if the device does not report a value."""

    uuid = serializers.CharField(source="gpu.uuid")
    index = serializers.IntegerField(source="gpu.index")
    name = serializers.CharField(source="gpu.name")
    memory_bytes = serializers.IntegerField(source="gpu.memory_bytes", allow_null=True)
    memory_used_bytes = serializers.IntegerField(allow_null=True)
    utilization_pct = serializers.FloatField(allow_null=True)
    power_w = serializers.FloatField(allow_null=True)
    temperature_c = serializers.FloatField(allow_null=True)
    state = serializers.CharField(
        source="gpu.state", help_text="ok, or lost if the device no longer responds."
    )
    error = serializers.CharField(source="gpu.error")
    fault = serializers.CharField(
        help_text="Why the GPU is unhealthy (a critical alert about it fires), such as 'XID 48'; else empty."
    )
    part_of = serializers.CharField(
        source="gpu.parent",
        help_text="For a MIG device, the UUID of the GPU that it is part of; otherwise empty.",
    )
    profile = serializers.CharField(
        source="gpu.profile", help_text="For a MIG device, its profile, such as 1g.10gb; otherwise empty."
    )
    mig = serializers.BooleanField(
        source="gpu.mig",
        help_text="True if the GPU is split into MIG devices. Runs then get the MIG devices, not the GPU.",
    )
    numbers = serializers.DictField(
        child=serializers.FloatField(),
        help_text=(
            "The latest value of each metric (see /api/v1/metrics/). Metrics without a value are absent."
        ),
    )
    counters = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="The current value of each of the GPU's counters, by name.",
    )
    held = LeaseSerializer(source="lease", allow_null=True)


class ProcessSerializer(serializers.Serializer[GpuProcessRow | Sequence[GpuProcessRow]]):
    """A process on a GPU; for a run of another workspace its name, user and run are hidden."""

    gpu = serializers.CharField(source="gpu.uuid")
    pid = serializers.IntegerField()
    name = serializers.CharField()
    user = serializers.CharField()
    memory_bytes = serializers.IntegerField(allow_null=True)
    sm_pct = serializers.FloatField(allow_null=True)
    run = serializers.CharField(
        source="lease.holder",
        default="",
        help_text="The run's id; empty if the process does not belong to a run of this workspace.",
    )
    rank = serializers.IntegerField(allow_null=True)


class NodeSerializer(serializers.Serializer[NodeCard | Sequence[NodeCard]]):
    name = serializers.CharField(source="node.name")
    cluster = serializers.CharField(source="node.cluster.name")
    status = serializers.CharField(help_text="The node's state: ready, unreachable, lost, new or revoked.")
    last_report_at = serializers.DateTimeField(source="node.last_report_at", allow_null=True)
    hostname = serializers.CharField(source="node.hostname")
    address = serializers.CharField(source="node.address")
    interface = serializers.CharField(source="node.interface")
    agent_version = serializers.CharField(source="node.agent_version")
    agent_is_behind = serializers.BooleanField(
        source="agent.is_behind", help_text="True if the hub's version of the agent is newer."
    )
    agent_remedy = serializers.CharField(
        source="agent.remedy",
        help_text="How the node gets the hub's version if it cannot be ordered to; else empty.",
    )
    cores = serializers.IntegerField(source="node.cores")
    slots = serializers.IntegerField(
        source="node.slots", help_text="The number of slots. Each slot can hold one process without a GPU."
    )
    slots_free = serializers.IntegerField()
    memory_bytes = serializers.IntegerField(source="node.memory_bytes")
    memory_used_bytes = serializers.IntegerField(allow_null=True)
    cpu_pct = serializers.FloatField(allow_null=True)
    data_cache_bytes = serializers.IntegerField(
        source="node.data_cache_bytes", help_text="The size of the cache of downloaded data; 0 if unknown."
    )
    data_lists = serializers.ListField(
        source="node.data_lists",
        child=serializers.CharField(),
        help_text="The keys of the lists of files that it has there, the latest first.",
    )
    disk_free_bytes = serializers.IntegerField(allow_null=True)
    infiniband = serializers.BooleanField(source="node.infiniband")
    monitor_only = serializers.BooleanField(
        source="node.monitor_only", help_text="True if the node is monitored only and takes no runs."
    )
    mpi = serializers.CharField(source="node.mpi")
    run_as = serializers.CharField(source="node.run_as")
    separation = serializers.CharField(
        source="node.separation", help_text="What keeps the runs of the node apart, and what does not."
    )
    containers = serializers.CharField(
        source="node.containers", help_text="The container engine of the node, or why it has none."
    )
    capabilities = serializers.SerializerMethodField(
        help_text="What the node's agent newly can: isolation:range, namespaces, cgroup, secrets, disk, "
        "network, hub-index."
    )
    interpreters = serializers.ListField(
        source="node.interpreters", child=serializers.DictField(child=serializers.CharField())
    )
    driver = serializers.CharField(source="node.driver")
    cuda = serializers.CharField(source="node.cuda")
    nvml = serializers.CharField(
        source="node.nvml", help_text="Why the node's GPUs cannot be read; empty if they can."
    )
    drained_at = serializers.DateTimeField(source="node.drained_at", allow_null=True)
    low_priority = serializers.BooleanField(
        source="node.low_priority", help_text="True if the node may disappear at any time."
    )
    removed_at = serializers.DateTimeField(
        source="node.removed_at",
        allow_null=True,
        help_text="When the node was removed from all lists; null if it was not.",
    )
    numbers = serializers.DictField(source="node.vitals.host", child=serializers.FloatField(), default=dict)
    gpus = GpuSerializer(many=True)
    processes = serializers.SerializerMethodField(help_text="The processes on the node's GPUs.")
    leases = LeaseSerializer(many=True)

    def get_capabilities(self, card: NodeCard) -> list[str]:
        return card.node.capabilities.split()

    @extend_schema_field(ProcessSerializer(many=True))
    def get_processes(self, card: NodeCard) -> list[dict[str, object]]:
        lines = process_lines(card, self.context["workspace"])
        return [dict(item) for item in ProcessSerializer(lines, many=True).data]


class StockSerializer(serializers.Serializer[ModelCount | Sequence[ModelCount]]):
    """The physical GPUs of one model."""

    name = serializers.CharField(help_text="The model's name as the devices report it.")
    count = serializers.IntegerField()
    memory_bytes = serializers.IntegerField(allow_null=True)
    model = serializers.CharField(
        source="model.name",
        default=None,
        allow_null=True,
        help_text="The model's name in /api/v1/gpu-models/; null if TrainHub does not know the model.",
    )


class GpuModelSerializer(serializers.Serializer[GpuModel | Sequence[GpuModel]]):
    name = serializers.CharField()
    memory_gib = serializers.IntegerField()
    peak_tflops = serializers.FloatField(
        help_text=(
            "Peak TFLOPS of dense 16-bit matrix products according to the data sheet; used to order the "
            "models."
        )
    )
    nvlink = serializers.BooleanField()
    azure = serializers.CharField(
        help_text="The Azure machine series with this GPU model; empty if there is none."
    )


class ClusterSerializer(serializers.Serializer[ClusterCard | Sequence[ClusterCard]]):
    name = serializers.CharField(source="cluster.name")
    kind = serializers.CharField(source="cluster.kind")
    gpus = serializers.IntegerField(help_text="The number of GPUs on the cluster's ready nodes.")
    gpus_free = serializers.IntegerField(help_text="How many a run can get: not held, and healthy.")
    gpus_unhealthy = serializers.IntegerField(
        help_text="How many GPUs of the ready nodes have a critical alert, held by a run or not."
    )
    slots = serializers.IntegerField()
    slots_free = serializers.IntegerField()
    gpu_models = serializers.SerializerMethodField(
        help_text="The GPUs of the cluster's nodes, counted by model, the slowest model first."
    )
    nodes = serializers.SerializerMethodField(help_text="The names of the cluster's nodes.")

    @extend_schema_field(StockSerializer(many=True))
    def get_gpu_models(self, card: ClusterCard) -> list[dict[str, object]]:
        return [
            dict(item)
            for item in StockSerializer(count_models(node.node for node in card.nodes), many=True).data
        ]

    def get_nodes(self, card: ClusterCard) -> list[str]:
        return [node.node.name for node in card.nodes]


class InvitationSerializer(serializers.Serializer[Mapping[str, object]]):
    cluster = serializers.CharField(
        max_length=50,
        default=default_cluster_name,
        help_text=(
            "The name of the cluster. If it does not exist, it is created when the machine joins. By default "
            "the only cluster, else the one that a machine joined last."
        ),
    )
    name = serializers.CharField(
        max_length=50,
        default="",
        allow_blank=True,
        help_text="The name of the node; if empty, the machine's host name is used.",
    )
    monitor_only = serializers.BooleanField(
        default=False, help_text="True if the node is monitored only and takes no runs."
    )


class InvitedSerializer(serializers.Serializer[Mapping[str, object]]):
    token = serializers.CharField(help_text="The token for `trainhub-node join`; it is shown only once.")
    command = serializers.CharField(help_text="The shell command, in one line, that joins the machine.")
    cluster = serializers.CharField()
    name = serializers.CharField()
    expires_at = serializers.DateTimeField()

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from clusters.gpus.gpu_models import count_models
from clusters.gpus.gpu_process_list import process_lines
from clusters.overview import ClusterCard, NodeCard


class LeaseSerializer(serializers.Serializer[Any]):
    """A lease of GPUs or slots; a run of another workspace appears only as busy."""

    run = serializers.CharField(
        source="holder", help_text="The run's id; empty for a run of another workspace."
    )
    title = serializers.CharField(source="label", help_text="'run 41', or 'busy'.")
    gpus = serializers.ListField(child=serializers.CharField())
    slots = serializers.IntegerField()
    since = serializers.DateTimeField()


class GpuSerializer(serializers.Serializer[Any]):
    """A device and its latest numbers; null = the device does not report it."""

    uuid = serializers.CharField(source="gpu.uuid")
    index = serializers.IntegerField(source="gpu.index")
    name = serializers.CharField(source="gpu.name")
    memory_bytes = serializers.IntegerField(source="gpu.memory_bytes", allow_null=True)
    memory_used_bytes = serializers.IntegerField(allow_null=True)
    utilization_pct = serializers.FloatField(allow_null=True)
    power_w = serializers.FloatField(allow_null=True)
    temperature_c = serializers.FloatField(allow_null=True)
    state = serializers.CharField(source="gpu.state", help_text="ok, or lost: it does not respond any more")
    error = serializers.CharField(source="gpu.error")
    part_of = serializers.CharField(source="gpu.parent", help_text="For a MIG device the UUID of its GPU.")
    profile = serializers.CharField(
        source="gpu.profile", help_text="For a MIG device its size, like 1g.10gb."
    )
    mig = serializers.BooleanField(
        source="gpu.mig", help_text="It is split into MIG devices, which runs get instead."
    )
    numbers = serializers.DictField(
        child=serializers.FloatField(),
        help_text="Its latest values by metric (/api/v1/metrics/); unknown ones are absent.",
    )
    counters = serializers.DictField(
        child=serializers.IntegerField(), help_text="Current values of its counters."
    )
    held = LeaseSerializer(source="lease", allow_null=True)


class ProcessSerializer(serializers.Serializer[Any]):
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
        help_text="The run's id; empty for a process of no run of this workspace.",
    )
    rank = serializers.IntegerField(allow_null=True)


class NodeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(source="node.name")
    cluster = serializers.CharField(source="node.cluster.name")
    status = serializers.CharField(help_text="ready, unreachable, lost, new or revoked")
    last_report_at = serializers.DateTimeField(source="node.last_report_at", allow_null=True)
    hostname = serializers.CharField(source="node.hostname")
    address = serializers.CharField(source="node.address")
    interface = serializers.CharField(source="node.interface")
    agent_version = serializers.CharField(source="node.agent_version")
    cores = serializers.IntegerField(source="node.cores")
    slots = serializers.IntegerField(source="node.slots", help_text="Places for processes without a GPU.")
    slots_free = serializers.IntegerField()
    memory_bytes = serializers.IntegerField(source="node.memory_bytes")
    memory_used_bytes = serializers.IntegerField(allow_null=True)
    cpu_pct = serializers.FloatField(allow_null=True)
    disk_free_bytes = serializers.IntegerField(allow_null=True)
    infiniband = serializers.BooleanField(source="node.infiniband")
    monitor_only = serializers.BooleanField(
        source="node.monitor_only", help_text="It is monitored and takes no runs."
    )
    mpi = serializers.CharField(source="node.mpi")
    run_as = serializers.CharField(source="node.run_as")
    interpreters = serializers.ListField(
        source="node.interpreters", child=serializers.DictField(child=serializers.CharField())
    )
    driver = serializers.CharField(source="node.driver")
    cuda = serializers.CharField(source="node.cuda")
    nvml = serializers.CharField(
        source="node.nvml", help_text="Why its GPUs cannot be read; empty if they can."
    )
    drained_at = serializers.DateTimeField(source="node.drained_at", allow_null=True)
    low_priority = serializers.BooleanField(
        source="node.low_priority", help_text="It may disappear at any time."
    )
    removed_at = serializers.DateTimeField(
        source="node.removed_at", allow_null=True, help_text="When it was removed from all lists."
    )
    numbers = serializers.DictField(source="node.vitals.host", child=serializers.FloatField(), default=dict)
    gpus = GpuSerializer(many=True)
    processes = serializers.SerializerMethodField(help_text="On its GPUs.")
    leases = LeaseSerializer(many=True)

    @extend_schema_field(ProcessSerializer(many=True))
    def get_processes(self, card: NodeCard) -> list[dict[str, Any]]:
        lines = process_lines(card, self.context["workspace"])
        return [dict(item) for item in ProcessSerializer(lines, many=True).data]


class StockSerializer(serializers.Serializer[Any]):
    """GPUs of one model."""

    name = serializers.CharField(help_text="As the devices report it.")
    count = serializers.IntegerField()
    memory_bytes = serializers.IntegerField(allow_null=True)
    model = serializers.CharField(
        source="model.name", default=None, allow_null=True, help_text="In /api/v1/gpu-models/."
    )


class GpuModelSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    memory_gib = serializers.IntegerField()
    peak_tflops = serializers.FloatField(
        help_text="Dense 16-bit matrix products according to the data sheet; for ordering."
    )
    nvlink = serializers.BooleanField()
    azure = serializers.CharField(help_text="The Azure machine series that has it; empty if there is none.")


class ClusterSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(source="cluster.name")
    kind = serializers.CharField(source="cluster.kind")
    gpus = serializers.IntegerField(help_text="On its ready nodes.")
    gpus_free = serializers.IntegerField()
    slots = serializers.IntegerField()
    slots_free = serializers.IntegerField()
    gpu_models = serializers.SerializerMethodField(
        help_text="The GPU models of its nodes, the slowest first."
    )
    nodes = serializers.SerializerMethodField(help_text="Their names.")

    @extend_schema_field(StockSerializer(many=True))
    def get_gpu_models(self, card: ClusterCard) -> list[dict[str, Any]]:
        return [
            dict(item)
            for item in StockSerializer(count_models(node.node for node in card.nodes), many=True).data
        ]

    def get_nodes(self, card: ClusterCard) -> list[str]:
        return [node.node.name for node in card.nodes]


class InvitationSerializer(serializers.Serializer[Any]):
    cluster = serializers.CharField(
        max_length=50, default="local", help_text="Created when the machine joins, if it does not exist."
    )
    name = serializers.CharField(
        max_length=50, default="", allow_blank=True, help_text="Empty: the host name of the machine."
    )
    monitor_only = serializers.BooleanField(default=False, help_text="It is monitored and takes no runs.")


class InvitedSerializer(serializers.Serializer[Any]):
    token = serializers.CharField(help_text="For `trainhub-node join`; shown only once.")
    command = serializers.CharField(help_text="One line for a shell on that machine.")
    cluster = serializers.CharField()
    name = serializers.CharField()
    expires_at = serializers.DateTimeField()

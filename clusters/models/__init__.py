"""Models of clusters, nodes, GPUs, leases, alerts and telemetry."""

from __future__ import annotations

from clusters.models.alerts import Alert, AlertThreshold, Baseline
from clusters.models.fair_share import ClusterShare, MonthlyUse, UseAccount
from clusters.models.leases import Hearing, Lease
from clusters.models.machines import ClusterEvent, ProvidedMachine
from clusters.models.nodes import Cluster, Gpu, JoinToken, Node, NodeEvent
from clusters.models.quotas import DiskUse, Quota
from clusters.models.slurm import AllocatedNode, Allocation, SlurmPartition, SlurmToken, UnixAccount
from clusters.models.telemetry import StoredSeries, TelemetryChunk, TelemetrySlice
from clusters.models.upgrades import AgentRollout, NodeUpgrade
from clusters.models.windows import NodeReservation

__all__ = [
    "AgentRollout",
    "Alert",
    "AlertThreshold",
    "AllocatedNode",
    "Allocation",
    "Baseline",
    "Cluster",
    "ClusterEvent",
    "ClusterShare",
    "DiskUse",
    "Gpu",
    "Hearing",
    "JoinToken",
    "Lease",
    "MonthlyUse",
    "Node",
    "NodeEvent",
    "NodeReservation",
    "NodeUpgrade",
    "ProvidedMachine",
    "Quota",
    "SlurmPartition",
    "SlurmToken",
    "StoredSeries",
    "TelemetryChunk",
    "TelemetrySlice",
    "UnixAccount",
    "UseAccount",
]

"""Clusters, nodes and their GPUs. Written by packaging/make_sdk_records.py."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from trainhub_sdk.records.record import Record


@dataclass
class Cluster(Record):
    name: str = ""
    kind: str = ""
    gpus: int = 0
    """The number of GPUs on the cluster's ready nodes."""
    gpus_free: int = 0
    """How many a run can get: not held, and healthy."""
    gpus_unhealthy: int = 0
    """How many GPUs of the ready nodes have a critical alert, held by a run or not."""
    slots: int = 0
    slots_free: int = 0
    gpu_models: list[dict[str, Any]] = field(default_factory=list)
    """The GPUs of the cluster's nodes, counted by model, the slowest model first."""
    nodes: list[str] = field(default_factory=list)
    """The names of the cluster's nodes."""


@dataclass
class Gpu(Record):
    uuid: str = ""
    index: int = 0
    name: str = ""
    memory_bytes: int | None = None
    memory_used_bytes: int | None = None
    utilization_pct: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    state: str = ""
    """ok, or lost if the device no longer responds."""
    error: str = ""
    fault: str = ""
    """Why the GPU is unhealthy (a critical alert about it fires), such as 'XID 48'; else empty."""
    part_of: str = ""
    """For a MIG device, the UUID of the GPU that it is part of; otherwise empty."""
    profile: str = ""
    """For a MIG device, its profile, such as 1g.10gb; otherwise empty."""
    mig: bool = False
    """True if the GPU is split into MIG devices. Runs then get the MIG devices, not the GPU."""
    numbers: dict[str, Any] = field(default_factory=dict)
    """The latest value of each metric (see /api/v1/metrics/). Metrics without a value are absent."""
    counters: dict[str, Any] = field(default_factory=dict)
    """The current value of each of the GPU's counters, by name."""
    held: dict[str, Any] | None = None


@dataclass
class Node(Record):
    name: str = ""
    cluster: str = ""
    status: str = ""
    """The node's state: ready, unreachable, lost, new or revoked."""
    last_report_at: str | None = None
    hostname: str = ""
    address: str = ""
    interface: str = ""
    agent_version: str = ""
    agent_is_behind: bool = False
    """True if the hub's version of the agent is newer."""
    agent_remedy: str = ""
    """How the node gets the hub's version if it cannot be ordered to; else empty."""
    cores: int = 0
    slots: int = 0
    """The number of slots. Each slot can hold one process without a GPU."""
    slots_free: int = 0
    memory_bytes: int = 0
    memory_used_bytes: int | None = None
    cpu_pct: float | None = None
    data_cache_bytes: int = 0
    """The size of the cache of downloaded data; 0 if unknown."""
    data_lists: list[str] = field(default_factory=list)
    """The keys of the lists of files that it has there, the latest first."""
    disk_free_bytes: int | None = None
    infiniband: bool = False
    monitor_only: bool = False
    """True if the node is monitored only and takes no runs."""
    mpi: str = ""
    run_as: str = ""
    separation: str = ""
    """What keeps the runs of the node apart, and what does not."""
    containers: str = ""
    """The container engine of the node, or why it has none."""
    capabilities: list[str] = field(default_factory=list)
    """What the node's agent newly can: isolation:range, namespaces, cgroup, secrets, disk, network, hub-
    index."""
    interpreters: list[dict[str, Any]] = field(default_factory=list)
    driver: str = ""
    cuda: str = ""
    nvml: str = ""
    """Why the node's GPUs cannot be read; empty if they can."""
    drained_at: str | None = None
    low_priority: bool = False
    """True if the node may disappear at any time."""
    removed_at: str | None = None
    """When the node was removed from all lists; null if it was not."""
    numbers: dict[str, Any] = field(default_factory=dict)
    gpus: list[Gpu] = field(default_factory=list)
    processes: list[dict[str, Any]] = field(default_factory=list)
    """The processes on the node's GPUs."""
    leases: list[dict[str, Any]] = field(default_factory=list)

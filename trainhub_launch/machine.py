"""The state of a machine and its GPUs, as its node reports it to the hub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from trainhub_launch.errors import WireError
from trainhub_launch.json_types import JsonValue
from trainhub_launch.telemetry import MAX_RANK_READS, GpuProcess, RankRead
from trainhub_launch.wire import numbers_of, read

GPU_OK, GPU_LOST = "ok", "lost"
GPU_STATES = (GPU_OK, GPU_LOST)
# Per node. A report with more of the first two is refused.
MAX_INTERPRETERS, MAX_PORTS, MAX_CAPABILITIES, MAX_DATA_LISTS = 1024, 1024, 64, 100
# Each attempt has an account of its own; a run has namespaces of its own; its memory, processes and CPU time
# can be limited; the agent keeps secrets in memory only; it ends runs that use too much of the disk;
# connections to ports of other runs and to metadata of the cloud are refused; it installs locked environments
# from the hub's own index; it takes orders to build an environment; runs can be in containers; it makes conda
# environments; it builds images from Dockerfiles; it builds wheels from source distributions; it takes the
# packages of conda from the hub; it knows inputs of runs; it downloads them from object stores, exactly the
# files of a dataset's version; it tests datastores, lists their files, and compares folders with such a list;
# it downloads files that were uploaded to the hub; it takes files from other nodes, and gives them to others;
# it writes outputs into object stores and folders; it mounts NFS shares; it makes addresses by which scripts
# read a store; it goes on with files that were changed after they were listed; it writes checkpoints into
# object stores and folders; it installs another version of itself when the hub orders that.
CAPABILITIES = (
    "isolation:range",
    "namespaces",
    "cgroup",
    "secrets",
    "disk",
    "network",
    "hub-index",
    "builds",
    "containers",
    "conda",
    "image-builds",
    "wheel-builds",
    "hub-conda",
    "inputs",
    "downloads",
    "datasets",
    "probe",
    "hub-data",
    "peers",
    "output-stores",
    "mounts",
    "references",
    "changed-data",
    "checkpoint-stores",
    "self_upgrade",
)
OWN_ACCOUNTS, NAMESPACES, CGROUP, SECRETS, DISK, NETWORK = CAPABILITIES[:6]
HUB_INDEX, BUILDS, CONTAINERS, CONDA, IMAGE_BUILDS, WHEEL_BUILDS, HUB_CONDA, INPUTS = CAPABILITIES[6:14]
DOWNLOADS, DATASETS, PROBE, HUB_DATA, PEERS, OUTPUT_STORES, MOUNTS = CAPABILITIES[14:21]
REFERENCES, CHANGED_DATA, CHECKPOINT_STORES, SELF_UPGRADE = CAPABILITIES[21:]
# In place of the last one: what else brings new versions to the node, as `upgrade-by:NAME`.
UPGRADE_BY = "upgrade-by:"
BY_APT, BY_HUB, BY_SLURM, BY_HAND = "apt", "hub", "slurm", "hand"
# Per GPU. Further ones are left out.
MAX_PROCESSES = 1024


@dataclass(frozen=True)
class GpuFact:
    """One device, identified by its UUID.

    `numbers`: the latest value of each metric (`trainhub_launch.metrics.GPU_KEYS`); `counters`: the value of
    each counter. What the device does not support is absent, never 0. `state`: `ok`, or `lost` for a device
    that has stopped answering, in which case `error` explains it. `parent`: for a MIG device, the UUID of the
    GPU that it is a part of, which has its own numbers; `profile`: its size, such as "1g.10gb". A GPU in MIG
    mode (`mig`) is not offered to runs, but its MIG devices are."""

    uuid: str
    index: int
    name: str
    memory_bytes: int | None = None
    numbers: Mapping[str, float] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)
    processes: tuple[GpuProcess, ...] = ()
    state: str = GPU_OK
    error: str = ""
    parent: str = ""
    profile: str = ""
    mig: bool = False


@dataclass(frozen=True)
class Interpreter:
    """A Python interpreter that runs can use as environment `system`."""

    path: str
    version: str

    def is_python(self, name: str) -> bool:
        """Returns whether `name` stands for it: its path, its version, or a prefix of that ("3.11")."""
        return name in (self.path, self.version) or self.version.startswith(f"{name}.")


@dataclass(frozen=True)
class NetworkPort:
    """An InfiniBand or RoCE port as the kernel reports it. `state`: ACTIVE, DOWN, INIT …; `rate`: for example
    "400 Gb/sec (4X NDR)"."""

    device: str
    port: int
    state: str
    rate: str = ""
    link_layer: str = ""


@dataclass(frozen=True)
class Heartbeat:
    """The identity and the present state of a node. `cores` and `slots`: see FreeNode. Sizes are in bytes,
    `cpu_pct` in percent.

    `numbers`: the machine's latest values (`trainhub_launch.metrics.HOST_KEYS`). `nvml`: a sentence that
    explains why GPUs cannot be read; "" if they can, or if there is no driver. `capabilities`: names of
    `CAPABILITIES`; others are of later versions. `separation`: what keeps runs of this node apart and what
    does not, in sentences. `containers`: the container engine with its version, or why there is none.
    `data_cache_bytes`: the size of its cache of data, 0 = unknown; `data_lists`: the keys of lists of files
    that it has there (see trainhub_launch.data.downloads.DataDownload.list_key), the latest first.
    `reads`: how fast the ranks on it read."""

    agent_version: str
    hostname: str
    address: str
    interface: str
    cores: int
    slots: int
    memory_bytes: int
    memory_used_bytes: int
    cpu_pct: float
    disk_free_bytes: int
    gpus: tuple[GpuFact, ...] = ()
    interpreters: tuple[Interpreter, ...] = ()
    mpi: str = ""
    run_as: str = ""
    infiniband: bool = False
    boot_id: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)
    network_ports: tuple[NetworkPort, ...] = ()
    driver: str = ""
    cuda: str = ""
    nvml: str = ""
    capabilities: tuple[str, ...] = ()
    separation: str = ""
    containers: str = ""
    data_cache_bytes: int = 0
    data_lists: tuple[str, ...] = ()
    reads: tuple[RankRead, ...] = ()


def heartbeat_of(data: Mapping[str, Any]) -> Heartbeat:
    """Returns the heartbeat in decoded `data`. Raises WireError, KeyError or TypeError for anything else."""
    return read(
        Heartbeat,
        {
            **data,
            "gpus": tuple(_gpu(gpu) for gpu in data["gpus"]),
            "interpreters": tuple(
                read(Interpreter, item) for item in _few(data, "interpreters", MAX_INTERPRETERS)
            ),
            "network_ports": tuple(
                read(NetworkPort, item) for item in _few(data, "network_ports", MAX_PORTS)
            ),
            "numbers": numbers_of(data["numbers"], "numbers"),
            # Absent in the reports of older agents.
            "capabilities": tuple(str(item) for item in data.get("capabilities", ())[:MAX_CAPABILITIES]),
            "reads": tuple(read(RankRead, item) for item in data.get("reads", ())[:MAX_RANK_READS]),
            "data_lists": tuple(str(item) for item in data.get("data_lists", ())[:MAX_DATA_LISTS]),
        },
    )


def _few(data: Mapping[str, JsonValue], name: str, most: int) -> Sequence[Any]:
    items = data[name]
    if not isinstance(items, list) or len(items) > most:
        raise WireError(f"{name} must be a list of at most {most:,}")
    return items


def _gpu(data: Mapping[str, Any]) -> GpuFact:
    if data["state"] not in GPU_STATES:
        raise WireError(f"the state of a GPU must be one of {', '.join(GPU_STATES)}")
    return read(
        GpuFact,
        {
            **data,
            "numbers": numbers_of(data["numbers"], "numbers"),
            # NaN and infinity cannot become an `int`; such a counter counts as unknown.
            "counters": {
                name: int(value)
                for name, value in numbers_of(data["counters"], "counters").items()
                if isfinite(value)
            },
            # Cut instead of refused: a GPU with very many processes must not cost the node its whole report.
            "processes": tuple(read(GpuProcess, item) for item in data["processes"][:MAX_PROCESSES]),
        },
    )

"""The resources that nodes offer, and those that a run needs of each of its nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from trainhub_launch.addresses import is_loopback
from trainhub_launch.machine import CAPABILITIES, Interpreter
from trainhub_launch.scheduler.capabilities import unmet_capabilities
from trainhub_launch.scheduler.data_room import UNKNOWN_ROOM, DataLists, DataRoom

_ALL_CAPABILITIES = frozenset(CAPABILITIES)


@dataclass(frozen=True)
class Hold:
    """The resources that one attempt holds on a node. `who` is worded for the reader's permissions: "run 41",
    "another workspace".

    `is_over`: the attempt has ended, but the node has not yet proved that its processes are gone."""

    who: str
    gpus: int = 0
    slots: int = 0
    is_over: bool = False


@dataclass(frozen=True)
class NodeWindow:
    """A time in which a node takes only the runs of one workspace (its id), or none (None): `begin_s` and
    `end_s` count from now, and a window that has begun has a negative `begin_s`. `why` completes "gpu-1 …":
    "is under maintenance from 18:00 to 20:00 UTC: new power supply"."""

    begin_s: float
    end_s: float
    workspace: int | None
    why: str

    def admits(self, demand: Demand) -> bool:
        return self.workspace is not None and self.workspace == demand.workspace


@dataclass(frozen=True)
class FreeNode:
    """What one node offers now. `gpus` and `slots` are the free ones, `*_total` all that it has.

    A slot is the place of one process without a GPU. `cores` are CPU cores, for OMP_NUM_THREADS. `mpi`: the
    node itself has mpirun (an environment may contain its own), of `mpi_version`, "" = unknown. `silent_s`:
    seconds since its last report, None = it reports; nothing is started on a silent node. `is_lost`: silent
    for so long that its attempts count as lost. `closed`: why it takes no new runs ("is drained"), "" = it
    takes them. `gpus_lost`: how many of its GPUs do not answer. `gpus_unhealthy`: how many others get no run
    because an alert says that they are broken; `faults`: what is wrong with those of them that no run holds
    ("XID 48"), one per GPU. `is_coming`: it does not exist yet and has nothing free, but the cluster's
    provider can create it. `memory` (bytes) and `cpus`: what no run has reserved; `memory_total`: all of it.
    `has_limits`: the node can hold a run to an amount of memory and CPU cores; `limits_disk`: to an
    amount of disk, of which `disk_free` bytes are free (None = unknown). `keeps_secrets`: it can be
    given secrets. `capabilities`: what else its agent can (`trainhub_launch.machine`). `windows`: when it
    takes only some runs, or none. `data`: its cache of downloaded data."""

    name: str
    address: str
    gpus: tuple[str, ...]
    gpus_total: int
    slots: int
    slots_total: int
    cores: int
    interface: str = ""
    infiniband: bool = False
    mpi: bool = True
    mpi_version: str = ""
    hostname: str = ""
    interpreters: tuple[Interpreter, ...] = ()
    silent_s: float | None = None
    is_lost: bool = False
    holds: tuple[Hold, ...] = ()
    closed: str = ""
    gpus_lost: int = 0
    gpus_unhealthy: int = 0
    faults: tuple[str, ...] = ()
    is_coming: bool = False
    memory: int = 0
    memory_total: int = 0
    cpus: float = 0.0
    has_limits: bool = False
    keeps_secrets: bool = False
    limits_disk: bool = False
    capabilities: frozenset[str] = frozenset()
    disk_free: int | None = None
    windows: tuple[NodeWindow, ...] = ()
    data: DataRoom = UNKNOWN_ROOM

    def can_ever(self, demand: Demand) -> bool:
        """Returns whether the node is large enough for `demand`, whatever is in use at present."""
        has_devices = demand.has_gpus(self.gpus_total, self.gpus_total) and self.slots_total >= demand.slots
        # The size of a machine that does not exist yet is not known.
        is_large = self.memory_total >= demand.memory_bytes and self.cores >= demand.cpus
        return has_devices and (self.is_coming or is_large) and self.data.can_ever(demand.data)

    def can_now(self, demand: Demand) -> bool:
        is_open = self.silent_s is None and not self.closed
        has_devices = demand.has_gpus(len(self.gpus), self.gpus_total) and self.slots >= demand.slots
        is_in_time = not self.windows or self.window_before_end(demand) is None
        has_room = has_devices and self.can_limit(demand) and self.has_disk(demand)
        has_room &= self.data.can_now(demand.data)
        return is_open and has_room and self.has_abilities(demand) and is_in_time

    def has_abilities(self, demand: Demand) -> bool:
        """Returns whether the node's agent can do what `demand` needs beyond resources; an agent of an
        earlier version may not."""
        can_hold = self.has_limits or not demand.is_limited
        can_hold &= self.limits_disk or not demand.disk_bytes
        can_hold &= not unmet_capabilities(demand.capabilities, self.capabilities)
        return can_hold and self.has_python(demand) and (self.keeps_secrets or not demand.has_secrets)

    def has_python(self, demand: Demand) -> bool:
        """Returns whether the node has the Python that `demand` needs; that of a node that does not exist yet
        is not known."""
        if not demand.python or self.is_coming:
            return True
        return any(interpreter.is_python(demand.python) for interpreter in self.interpreters)

    def has_disk(self, demand: Demand) -> bool:
        """Returns whether as much disk is free as `demand` needs. It is not reserved: what other runs write
        later is not known."""
        return self.disk_free is None or self.disk_free >= demand.disk_bytes

    def can_limit(self, demand: Demand) -> bool:
        """Returns whether the node has the memory and the CPU cores free that `demand` sets, and can hold a
        run to that; always if it sets none."""
        if not demand.is_limited:
            return True
        return self.has_limits and self.memory >= demand.memory_bytes and self.cpus >= demand.cpus

    def could_soon(self, demand: Demand) -> bool:
        """Returns whether the node can serve `demand` as soon as other runs end or, if it is coming, as soon
        as it exists; not if somebody has to repair or reopen it first, or a window has to pass."""
        is_open = not (self.is_lost or self.closed) and self.window_before_end(demand) is None
        is_able = self.is_coming or self.has_abilities(demand)
        return (
            is_open
            and is_able
            and self.can_ever(demand)
            and demand.has_gpus(self.gpus_usable, self.gpus_total)
        )

    def window_before_end(self, demand: Demand) -> NodeWindow | None:
        """Returns the first window that the run may not use and would reach into if it started now."""
        limit = float("inf") if demand.limit_s is None else demand.limit_s
        reached = (
            window
            for window in self.windows
            if window.begin_s < limit and window.end_s > 0 and not window.admits(demand)
        )
        return min(reached, key=lambda window: window.begin_s, default=None)

    @cached_property
    def idle(self) -> FreeNode:
        """The node as if nobody used it, with the GPUs that work. Kept, because each submission asks it of
        all nodes of a cluster."""
        return self.with_all_free(self.gpus_usable)

    def with_all_free(self, gpu_count: int) -> FreeNode:
        """Returns the node as if all its resources were free and it could do everything, with so many
        GPUs."""
        gpus = tuple(f"<GPU {index} of {self.name}>" for index in range(gpu_count))
        # In one step: a cluster has hundreds of nodes, and `replace` sets all fields anew.
        return replace(
            self,
            gpus=gpus,
            slots=self.slots_total,
            silent_s=None,
            is_lost=False,
            memory=self.memory_total,
            cpus=float(self.cores),
            has_limits=True,
            keeps_secrets=True,
            limits_disk=True,
            disk_free=None,
            capabilities=_ALL_CAPABILITIES,
            holds=(),
            closed="",
            windows=(),
            data=replace(self.data, in_use=frozenset()) if self.data.in_use else self.data,
        )

    @property
    def gpus_usable(self) -> int:
        """The number of GPUs that runs can get, free or not."""
        return self.gpus_total - self.gpus_lost - self.gpus_unhealthy

    @property
    # A coming node is excluded here, not in `can_now`: it has nothing free, so nothing fits there anyway.
    def takes_runs(self) -> bool:
        return self.silent_s is None and not self.closed and not self.is_coming

    @property
    def is_alone(self) -> bool:
        """Whether no other machine can reach the node at the address that it reports."""
        return not self.address or is_loopback(self.address)


@dataclass(frozen=True)
class AllGpus:
    """A run takes all GPUs of its nodes. `processes`: at most so many run on each node, of which
    `cpu_processes` never get a GPU."""

    processes: int = 1
    cpu_processes: int = 0

    @property
    def gpu_processes(self) -> int:
        return self.processes - self.cpu_processes

    def slots(self, gpus: int) -> int:
        """Returns the process slots that the run needs on a node with so many GPUs."""
        return self.cpu_processes if gpus else self.processes


@dataclass(frozen=True)
class Demand:
    """The resources that a spec needs of each of its nodes. `slots` counts the processes without a GPU.

    `nodes_field` is the field of the spec that sets the number of nodes, for messages about it. `mpi`: nodes
    with an mpirun of their own are preferred. `memory_bytes` and `cpus`: what the run reserves and may use; 0
    = it reserves nothing and has no limit. `disk_bytes`: the disk that it may use, 0 = it has no limit.
    `limit_s`: the run ends after so many seconds at the latest, None = it has no time limit. `workspace`: the
    id of its workspace, for nodes that are reserved for one. `has_secrets`: it gets named secrets. `python`:
    the version or path of the Python that its environment needs, "" = any. `capabilities`: what else the
    node's agent must be able to do. `data`: the lists of files that each node must have in its cache.
    `all_gpus`: the run takes all GPUs of its nodes; `gpus` is the number that each of them has."""

    nodes: int
    gpus: int
    slots: int
    nodes_field: str = "distribution.node_count"
    mpi: bool = False
    memory_bytes: int = 0
    cpus: float = 0.0
    disk_bytes: int = 0
    limit_s: int | None = None
    workspace: int | None = None
    has_secrets: bool = False
    python: str = ""
    capabilities: frozenset[str] = frozenset()
    data: DataLists = frozenset()
    all_gpus: AllGpus | None = None

    @property
    def is_limited(self) -> bool:
        return bool(self.memory_bytes or self.cpus)

    def has_gpus(self, gpus: int, total: int) -> bool:
        """Returns whether `gpus` of a node's `total` GPUs are those that the run needs there."""
        return gpus >= self.gpus and (self.all_gpus is None or total == self.gpus)


def words(names: list[str]) -> str:
    """Returns the names as a list in words: "a", "a and b" or "a, b and c"; "" for an empty list."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"

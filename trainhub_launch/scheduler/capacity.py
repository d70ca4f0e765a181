"""What nodes offer, and what a run asks of each of its nodes."""

from __future__ import annotations

from dataclasses import dataclass

from trainhub_launch.addresses import is_loopback
from trainhub_launch.machine import Interpreter


@dataclass(frozen=True)
class Hold:
    """What one attempt holds on a node. `who` is as the reader may know it: "run 41", "another workspace".

    `is_over`: the attempt has ended, and the node has not yet proved that its processes are gone.
    """

    who: str
    gpus: int = 0
    slots: int = 0
    is_over: bool = False


@dataclass(frozen=True)
class FreeNode:
    """What one node offers now. `gpus`/`slots` are free ones, `*_total` all it has.

    A slot is the place of one process without a GPU. `cores` are CPU cores, for OMP_NUM_THREADS.
    `mpi`: the node itself has mpirun (an environment may bring its own), of `mpi_version`, "" = not known.
    `silent_s`: None = it reports; a number = for so long it has not, and nothing is started there.
    `is_lost`: silent for so long that what it ran counts as lost.
    `closed`: why it takes no new runs ("is drained"), "" = it takes them. `gpus_lost`: how many of its GPUs
    do not answer.
    `is_coming`: not there yet, so nothing of it is free; the cluster's provider can make it.
    """

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
    is_coming: bool = False

    def can_ever(self, wanted: Demand) -> bool:
        """Whether the node is large enough, whatever it holds at present."""
        return self.gpus_total >= wanted.gpus and self.slots_total >= wanted.slots

    def can_now(self, wanted: Demand) -> bool:
        is_open = self.silent_s is None and not self.closed
        return is_open and len(self.gpus) >= wanted.gpus and self.slots >= wanted.slots

    def could_soon(self, wanted: Demand) -> bool:
        """Whether it is enough that runs end there, or that it comes: nobody has to mend or reopen it
        first."""
        return (
            not (self.is_lost or self.closed)
            and self.can_ever(wanted)
            and self.gpus_total - self.gpus_lost >= wanted.gpus
        )

    @property
    def takes_runs(self) -> bool:
        return self.silent_s is None and not self.closed and not self.is_coming

    @property
    def is_alone(self) -> bool:
        """No other machine reaches it at the address it tells."""
        return not self.address or is_loopback(self.address)


@dataclass(frozen=True)
class Demand:
    """What a spec asks of each of its nodes. `slots` counts the processes that get no GPU.

    `nodes_field` is where the spec says how many nodes, for a refusal that is about their number.
    `mpi`: nodes with an mpirun of their own are preferred.
    """

    nodes: int
    gpus: int
    slots: int
    nodes_field: str = "distribution.node_count"
    mpi: bool = False


def words(names: list[str]) -> str:
    """a; a and b; a, b and c. Nothing for nobody."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"

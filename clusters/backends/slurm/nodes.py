"""Slurm's nodes and partitions, for the cluster's page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from clusters.backends.slurm.commands import SlurmCommands
from clusters.backends.slurm.errors import SlurmError, SlurmFault

_PAIR = re.compile(r"(?:^| )([A-Za-z]+)=(\S*)")
# Free text to the end of the line or the next of these words, with who wrote it and when.
_REASON = re.compile(r" Reason=(.*?)(?: \[([^\[\]@]*)@([^\[\]]*)\])?(?: Comment=.*| Extra=.*)?$")
# gpu:a100:4(S:0-1),gpu:2,gres:gpu:4; what is not a GPU is left out.
_GPU = re.compile(r"(?:^|,)(?:gres:)?gpu(?::([^:,()]+))?:([0-9]+)(?![0-9A-Za-z_.-])")
# Of a node that does not answer, saves power, boots or is reserved.
_MARKS = "*~#!%$@^-"
_TIME = re.compile(r"(?:([0-9]+)-)?([0-9]+):([0-9]+):([0-9]+)")


@dataclass(frozen=True)
class SlurmNode:
    """`states` are Slurm's words (`IDLE`, `DRAIN`); GPUs are counts by model, "" where Slurm names none."""

    name: str
    states: tuple[str, ...]
    partitions: tuple[str, ...]
    cpus: int
    cpus_allocated: int
    memory_mb: int
    memory_allocated_mb: int
    gpus: Mapping[str, int]
    gpus_allocated: Mapping[str, int]
    reason: str = ""
    reason_by: str = ""
    reason_at: int | None = None

    @property
    def is_usable(self) -> bool:
        """Whether Slurm starts jobs on it, now or when there is room."""
        return not {"DOWN", "DRAIN", "FAIL", "INVALID_REG", "NOT_RESPONDING", "MAINTENANCE"} & {*self.states}


@dataclass(frozen=True)
class Partition:
    name: str
    is_up: bool
    max_time_s: int | None
    node_count: int


def read_nodes(commands: SlurmCommands) -> list[SlurmNode]:
    """Returns all nodes. Raises SlurmError."""
    text = commands.run(["scontrol", "show", "node", "-d", "-o"])
    return [_parse_node(line) for line in text.splitlines() if line.startswith("NodeName=")]


def read_partition(commands: SlurmCommands, name: str) -> Partition:
    """Raises SlurmError, with the fault REFUSED if there is no such partition."""
    text = commands.run(["scontrol", "show", "partition", "-o", name])
    values = _pairs(text)
    if "PartitionName" not in values:
        raise SlurmError(SlurmFault.REFUSED, f"Slurm knows no partition {name}.")
    return Partition(
        values["PartitionName"],
        values.get("State") == "UP",
        parse_time_limit(values.get("MaxTime", "")),
        _count(values, "TotalNodes"),
    )


def parse_time_limit(text: str) -> int | None:
    """Returns seconds of `1-02:03:04`, or None if there is no limit."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _pairs(line: str) -> dict[str, str]:
    """The first of each name, as free text at the end may look like pairs."""
    pairs: dict[str, str] = {}
    for name, value in _PAIR.findall(line):
        pairs.setdefault(name, value)
    return pairs


def _parse_node(line: str) -> SlurmNode:
    values = _pairs(line)
    reason = _REASON.search(line)
    written_at = reason[3] if reason else None
    return SlurmNode(
        values["NodeName"],
        tuple(word.rstrip(_MARKS) for word in values.get("State", "UNKNOWN").split("+")),
        tuple(filter(None, values.get("Partitions", "").split(","))),
        _count(values, "CPUTot"),
        _count(values, "CPUAlloc"),
        _count(values, "RealMemory"),
        _count(values, "AllocMem"),
        count_gpus_by_model(values.get("Gres", "")),
        count_gpus_by_model(values.get("GresUsed", "")),
        reason=reason[1] if reason else "",
        reason_by=(reason[2] or "") if reason else "",
        reason_at=int(written_at) if written_at and written_at.isdecimal() else None,
    )


def count_gpus_by_model(gres: str) -> Mapping[str, int]:
    """Returns the GPUs in `gpu:a100:4(S:0-1),nvme:1` by model, "" where Slurm names none."""
    counts: dict[str, int] = {}
    # In brackets stand indices and sockets, with commas of their own.
    for model, count in _GPU.findall(re.sub(r"\([^()]*\)", "", gres)):
        counts[model] = counts.get(model, 0) + int(count)
    return counts


def _count(values: dict[str, str], name: str) -> int:
    text = values.get(name, "")
    return int(text) if text.isdecimal() else 0

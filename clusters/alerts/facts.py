"""What rules judge by: one moment's picture of nodes, GPUs and who holds them. Values only; no rule asks the
database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

HOLDER = "{holder}"
"""Stands in a stored sentence for whoever holds the GPU; each workspace reads there what it may know."""


@dataclass(frozen=True)
class LeaseFacts:
    """A lease. `holder` is a run's id, `label` what its own workspace calls it."""

    holder: str
    attempt: int
    label: str
    workspace: int | None


@dataclass(frozen=True)
class RecentEvent:
    """A stored event of a GPU: xid (with its code), ecc, lost or back; and of its node: restarted."""

    kind: str
    age_s: float
    code: int = 0


@dataclass(frozen=True)
class CounterGrowth:
    """By how much a counter has grown when it last did."""

    by: int
    age_s: float


@dataclass(frozen=True)
class GpuFacts:
    """`mean` and `peak` are of the newest bucket; what is not known is absent. `grown`: ECC errors since they
    are watched."""

    uuid: str
    index: int
    name: str = ""
    memory_bytes: int | None = None
    state: str = "ok"
    error: str = ""
    parent: str = ""
    mig: bool = False
    mean: Mapping[str, float] = field(default_factory=dict)
    peak: Mapping[str, float] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)
    processes: Sequence[Mapping[str, Any]] = ()
    lease: LeaseFacts | None = None
    events: Sequence[RecentEvent] = ()
    ecc_growth: CounterGrowth | None = None


@dataclass(frozen=True)
class NodeFacts:
    """`is_heard`: its numbers are of now. `ports`: those that have been active of late, and whether each
    is."""

    pk: int
    name: str
    is_reporting: bool = True
    silence_s: float = 0.0
    is_drained: bool = False
    is_monitor_only: bool = False
    nvml: str = ""
    clock_offset_s: float = 0.0
    memory_bytes: int | None = None
    memory_used_bytes: float | None = None
    disk_free_bytes: float | None = None
    ports: Mapping[str, bool] = field(default_factory=dict)
    gpus: Sequence[GpuFacts] = ()
    holders: Sequence[LeaseFacts] = ()


@dataclass(frozen=True)
class RuleMatch:
    """A condition that holds. `also` tells findings of one rule about one thing apart; `severity` where it is
    not the rule's.

    `node` and `gpu` say where, for a rule about runs.
    """

    sentence: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    severity: str = ""
    subkey: str = ""
    node: int | None = None
    gpu: str = ""


RuleResult = Sequence[RuleMatch] | None
"""None: not known. Nothing: known not to hold."""

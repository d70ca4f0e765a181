"""The facts that rules evaluate: nodes, GPUs and their leases at one moment. Rules never query the
database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clusters.node_reports.inventory import ProcessVitals
from trainhub_launch.json_types import JsonValue

# Placeholder in stored sentences for the holder of the GPU; it is filled in for each workspace.
HOLDER = "{holder}"


@dataclass(frozen=True)
class RankSilence:
    """For how long a rank has written nothing, or run without having written anything."""

    rank: int
    node: str
    silent_s: float


@dataclass(frozen=True)
class RunSilence:
    """For how long a run at work has given no sign of life: no output of any rank and no metric. `ranks`: its
    ranks that have been silent the longest, the longest first."""

    silent_s: float
    ranks: Sequence[RankSilence]


@dataclass(frozen=True)
class LeaseFacts:
    """An open lease. `holder` is a run's id, `label` the name of the run in its own workspace. `silence`:
    None while the run is not at work."""

    holder: str
    attempt: int
    label: str
    workspace: int | None
    silence: RunSilence | None = None


@dataclass(frozen=True)
class RecentEvent:
    """A journal entry: `kind` is xid (with its code), ecc or back for a GPU, or restarted for its node."""

    kind: str
    age_s: float
    code: int = 0


@dataclass(frozen=True)
class CounterGrowth:
    """The last growth of an error counter: by how much, and how long ago."""

    by: int
    age_s: float


@dataclass(frozen=True)
class GpuFacts:
    """The facts about one GPU. `mean` and `peak`: values of the newest bucket by metric; unknown metrics are
    absent. `ecc_growth`: the last growth of its uncorrected memory errors."""

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
    processes: Sequence[ProcessVitals] = ()
    lease: LeaseFacts | None = None
    events: Sequence[RecentEvent] = ()
    ecc_growth: CounterGrowth | None = None


@dataclass(frozen=True)
class NodeFacts:
    """The facts about one node. `is_reporting`: its numbers are current. `cluster`: the id of its cluster.
    `ports`: recently active ports, and whether each is active now."""

    pk: int
    name: str
    cluster: int | None = None
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
    leases: Sequence[LeaseFacts] = ()


@dataclass(frozen=True)
class RuleMatch:
    """One match of a rule's condition. `subkey` distinguishes several matches of one rule for one subject;
    `severity` overrides that of the rule; `node` and `gpu` name the place for a rule about runs. `cause`:
    what is wrong, in a few words, if that makes a GPU unhealthy."""

    sentence: str
    facts: Mapping[str, JsonValue] = field(default_factory=dict)
    severity: str = ""
    subkey: str = ""
    node: int | None = None
    gpu: str = ""
    cause: str = ""


# None: unknown. Empty: the condition does not hold.
RuleResult = Sequence[RuleMatch] | None

"""RunSpec: the description of a run by its user. Names of fields are those of Azure ML where it has them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from trainhub_launch.data.outputs import OutputPlace
from trainhub_launch.distribution import Distribution
from trainhub_launch.machine import (
    CHANGED_DATA,
    CHECKPOINT_STORES,
    DATASETS,
    DOWNLOADS,
    INPUTS,
    OUTPUT_STORES,
    PROBE,
    REFERENCES,
)

VERSION = 1
# How data reaches a script: at its own place on the node, downloaded into the node's cache, or by addresses
# from which the script reads it.
INPUT_MODES = MOUNT, DOWNLOAD, REFERENCE = "mount", "download", "reference"
# What becomes of a run if files are not those of the version any more: it fails, or uses what is there now.
IF_CHANGED = FAIL, USE = "fail", "use"
LOWEST_PRIORITY, HIGHEST_PRIORITY = -10, 10
# What `resources.gpus_per_node` says for all GPUs of each node.
ALL_GPUS = "all"
# `\Z` instead of `$`, which would also accept a newline at the end.
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# It becomes a part of the name of a variable.
INPUT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}\Z")
EXPERIMENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,127}\Z")


@dataclass(frozen=True)
class SnapshotSource:
    """A source folder stored on the hub; `id` is the SHA-256 of its canonical zip."""

    id: str
    type: str = "snapshot"


@dataclass(frozen=True)
class ExampleSource:
    """One of the built-in examples; the hub turns it into a snapshot when the run is submitted."""

    name: str
    type: str = "example"


@dataclass(frozen=True)
class GitSource:
    """A folder of a git repository. `url`: its https:// address, in which `${NAME}` stands for a secret;
    `ref`: a tag, a branch or a whole commit, "" for the default branch; `path`: the folder, "" for all of it.

    When the run is submitted the hub fetches it, and sets `commit` and `id`, the snapshot of its files."""

    url: str
    ref: str = ""
    path: str = ""
    commit: str = ""
    id: str = ""
    type: str = "git"

    @property
    def is_fetched(self) -> bool:
        return bool(self.id)


Source = SnapshotSource | ExampleSource | GitSource


@dataclass(frozen=True)
class Resources:
    """The resources of a run. `cluster` "" = the hub chooses when the run is submitted; `gpus_per_node` 0 = a
    CPU run; `node_count` None = the distribution sets the number. `memory` and `disk` (bytes) and
    `cpus` (CPU cores, also parts of one) are what it may use on each node; None = whatever is there.

    `all_gpus`: it takes every GPU of each of its nodes, and `gpus_per_node` is their number as far as the
    nodes are known (`RunSpec.with_gpus`), 0 before. Its JSON says "all" in both cases."""

    cluster: str = ""
    node_count: int | None = None
    gpus_per_node: int = 0
    memory: int | None = None
    cpus: float | None = None
    disk: int | None = None
    all_gpus: bool = False

    def to_json(self) -> dict[str, Any]:
        always = {
            "cluster": self.cluster,
            "node_count": self.node_count,
            "gpus_per_node": ALL_GPUS if self.all_gpus else self.gpus_per_node,
        }
        # Without what is not set: specs that limit nothing look as they did before limits existed.
        optional = {"memory": self.memory, "cpus": self.cpus, "disk": self.disk}
        return always | {name: value for name, value in optional.items() if value is not None}


@dataclass(frozen=True)
class EnvironmentRef:
    """The environment of a run: `system` (with `version` = an interpreter that the node reports, or "") or a
    named one."""

    name: str = "system"
    version: str = ""


@dataclass(frozen=True)
class Variable:
    """An environment variable: a plain value, or the name of a secret. Exactly one of the two is set."""

    value: str | None = None
    secret: str | None = None


@dataclass(frozen=True)
class Limits:
    timeout_s: int | None = None
    grace_s: int = 10
    retries: int = 0


@dataclass(frozen=True)
class Checkpoints:
    """What happens to the run's checkpoints. `keep`: how many complete ones are kept; `path`: the folder
    below the working folder in which the script writes them. `datastore`: where they are kept, below
    `datastore_path` there, "" = on the hub.

    `resume_from`: the id of a run of the workspace whose newest complete checkpoint, or the one with this
    `number`, is in that folder when the ranks start."""

    keep: int = 3
    path: str = "checkpoints"
    resume_from: str = ""
    number: int | None = None
    datastore: str = ""
    datastore_path: str = ""

    def to_json(self) -> dict[str, Any]:
        # Without what is not set: specs that say nothing of checkpoints look as they did before.
        default = Checkpoints()
        return {name: value for name, value in vars(self).items() if value != getattr(default, name)}


@dataclass(frozen=True)
class DataInput:
    """Data that the run reads: the folder or file `path` below a `datastore` of its workspace, "" for all of
    it; or a `dataset` of its workspace. `mode`: how it reaches the script; `mount`: where it lies on each
    node; `download`: in the cache of each node; `reference`: by addresses, and nodes download nothing; "" as
    the datastore allows. `version`: the number of the dataset's version; None = the newest one. The hub
    decides both when the run is submitted. `if_changed`: one of IF_CHANGED, only of a dataset."""

    datastore: str = ""
    path: str = ""
    mode: str = ""
    dataset: str = ""
    version: int | None = None
    if_changed: str = FAIL

    @property
    def uses_changed(self) -> bool:
        return self.if_changed == USE

    def to_json(self) -> dict[str, str | int]:
        default = DataInput()
        return {name: value for name, value in vars(self).items() if value != getattr(default, name)}


@dataclass(frozen=True)
class RunSpec:
    source: Source
    experiment: str = "default"
    display_name: str = ""
    script: str = ""
    arguments: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    distribution: Distribution | None = None
    resources: Resources = Resources()
    environment: EnvironmentRef = EnvironmentRef()
    environment_variables: Mapping[str, Variable] = field(default_factory=dict)
    limits: Limits = Limits()
    checkpoint: Checkpoints = Checkpoints()
    inputs: Mapping[str, DataInput] = field(default_factory=dict)
    outputs: OutputPlace | None = None
    priority: int = 0
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def capabilities(self) -> frozenset[str]:
        """What nodes must be able to do for it, whatever its environment needs."""
        inputs = self.inputs.values()
        modes = {DOWNLOAD: DOWNLOADS, REFERENCE: REFERENCES}
        needs = {modes[item.mode] for item in inputs if item.mode in modes}
        # The files of a folder are compared with the list of a dataset where they lie.
        lists = {PROBE if item.mode == MOUNT else DATASETS for item in inputs if item.dataset}
        changed = {CHANGED_DATA for item in inputs if item.uses_changed}
        stores = {OUTPUT_STORES} if self.outputs else set()
        stores |= {CHECKPOINT_STORES} if self.checkpoint.datastore else set()
        return frozenset({INPUTS, *needs, *lists, *changed, *stores} if inputs else stores)

    @property
    def node_count(self) -> int:
        """The number of nodes that the run needs: from the distribution if there is one, otherwise from the
        resources, otherwise 1."""
        requested = self.resources.node_count
        return (requested or 1) if self.distribution is None else self.distribution.nodes(requested)

    @property
    def snapshot(self) -> str:
        """The id of the source's snapshot, "" if the hub makes it only when the run is submitted."""
        return "" if isinstance(self.source, ExampleSource) else self.source.id

    def with_gpus(self, gpus: int) -> RunSpec:
        """Returns the spec with the number of GPUs that each of its nodes has, if it takes all of them."""
        if not self.resources.all_gpus:
            return self
        return replace(self, resources=replace(self.resources, gpus_per_node=gpus))

    def with_source(self, source: Source) -> RunSpec:
        return replace(self, source=source)

    def to_json(self) -> dict[str, Any]:
        checkpoint = self.checkpoint.to_json()
        data = {
            "version": VERSION,
            "experiment": self.experiment,
            "display_name": self.display_name,
            # Without what is not set, such as the commit of a repository that is not fetched yet.
            "source": {name: value for name, value in vars(self.source).items() if value},
            "script": self.script,
            "arguments": list(self.arguments),
            "command": list(self.command),
            "distribution": None if self.distribution is None else self.distribution.to_json(),
            "resources": self.resources.to_json(),
            "environment": dict(vars(self.environment)),
            "environment_variables": {
                name: variable.value if variable.secret is None else {"secret": variable.secret}
                for name, variable in self.environment_variables.items()
            },
            "limits": dict(vars(self.limits)),
            "priority": self.priority,
            "tags": dict(self.tags),
        }
        inputs = {name: data_input.to_json() for name, data_input in self.inputs.items()}
        outputs = self.outputs.to_json() if self.outputs else {}
        later = {"checkpoint": checkpoint, "inputs": inputs, "outputs": outputs}
        return data | {name: value for name, value in later.items() if value}

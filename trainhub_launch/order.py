"""NodeOrder: the answer to a node's claim, with all that the node needs to run its part of one attempt."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from trainhub_launch.data.checkpoint_order import CheckpointOrder
from trainhub_launch.data.downloads import DataDownload, InputList
from trainhub_launch.data.outputs import StoreFolder
from trainhub_launch.data.shares import InputMount
from trainhub_launch.json_types import JsonObject, JsonValue
from trainhub_launch.plan import NodeCommand, command_from_json, command_to_json

VERSION = 2
# The kind of environments whose ranks run in a container.
IMAGE = "image"
# The kind of the environment in an order to make what an environment consists of.
MAKE = "make"


class OrderKind(StrEnum):
    """What a node is to do. RUN: start its processes of a run. BUILD: make an environment, nothing else.
    PROBE: read a datastore, to test it or to list its files."""

    RUN = "run"
    BUILD = "build"
    PROBE = "probe"


@dataclass(frozen=True)
class EnvironmentSpec:
    """The software environment of a run. `kind` `system`: the interpreter `python` as it is; `venv`: a cached
    virtual environment made from `requirements` with pip, `python` being its base interpreter ("" = the
    node's default). `index_urls`: the first is pip's index, the others are extra ones. `lock`: the text of a
    requirements file with every package, its exact version and its hashes, which is then installed instead;
    agents that do not know it install `requirements`. `conda`: the environment is one of conda, made of
    these `packages`, and `lock` is what pip installs on top; only nodes with the capability get such an
    order.

    `image`: of kind `image`, in which the ranks run: {"reference": as the person named it, "digest": of the
    manifest, "pull": the name by which nodes get exactly that one, "environment": its variables as
    NAME=value, "working_dir": its own folder}. The last two are for pages: nodes ask their engine."""

    name: str
    version: str
    kind: str
    python: str = ""
    requirements: tuple[str, ...] = ()
    index_urls: tuple[str, ...] = ()
    lock: str = ""
    image: Mapping[str, Any] = field(default_factory=dict)
    conda: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """The name of the cache folder. Environments of equal content share it, whatever their names are."""
        # The order of requirements does not matter to pip, but the first index is the main one and the others
        # are extra.
        content: list[object] = [self.kind, self.python, sorted(self.requirements), list(self.index_urls)]
        # Without a lock the digest is that of earlier versions, whose environments stay valid.
        if self.lock:
            content.append(self.lock)
        if self.image:
            content.append([self.image["pull"], self.image["digest"]])
        if self.conda:
            content.append({"conda": self.conda})
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:20]

    def to_json(self) -> JsonObject:
        later: dict[str, JsonValue] = {
            "lock": self.lock,
            "conda": dict(self.conda),
            "image": dict(self.image),
        }
        data: dict[str, JsonValue] = {name: value for name, value in later.items() if value}
        return data | {
            "name": self.name,
            "version": self.version,
            "kind": self.kind,
            "python": self.python,
            "requirements": list(self.requirements),
            "index_urls": list(self.index_urls),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> EnvironmentSpec:
        return cls(
            name=data["name"],
            version=data["version"],
            kind=data["kind"],
            python=data["python"],
            requirements=tuple(data["requirements"]),
            index_urls=tuple(data["index_urls"]),
            # An upgraded agent still reads orders of an older version, which had no locks.
            lock=data.get("lock", ""),
            image=dict(data.get("image", {})),
            conda=dict(data.get("conda", {})),
        )


@dataclass(frozen=True)
class ImageRegistry:
    """Where a node pulls the image of its environment from: the hub. `address`: registry and repository,
    such as "hub.example.org:443/env/7"; `ADDRESS@DIGEST` is the name to pull. `token`: the password, with any
    user name, such as "node"; it opens this image only, and ends with the node's part of the attempt. For a
    file that the engine reads, never for an argument."""

    address: str
    token: str


@dataclass(frozen=True)
class NodeOrder:
    """The part of one node in an attempt. `values`: the value of every Reference in the plan, by
    `secret:NAME` or `launch:NAME`.

    `kind`: an OrderKind, as plain text because a newer hub may know more of them. An order to build has the
    id of the build as `run`, and no processes, snapshot or values.

    The node itself adds launch:work_dir and launch:node_dir. `masked`: values that must never be shown. `go`:
    whether the processes may start. An order of a run on several nodes comes twice: first with `go` False and
    a provisional `command`, for preparation, and once every node is ready, with `go` True and the final
    `command`. `memory_bytes`, `cpus` and `disk_bytes`: what the part may use; None = whatever is there.
    `person`: the name with which the person who submitted the run signs in; "" = nobody any more; None = an
    older hub, which does not say. `package_index`: the address of the hub's own index with the files of the
    environment's lock, "" if it has none; `package_ticket`: what opens it. `image_registry`: None = the node
    pulls `environment.image["pull"]`. `make`: of an order to build whose environment is of kind `make`: what
    the node is to make instead of an environment: {"kind": the name of that work, "upload": the address below
    which the result goes to the hub, "ticket": what opens that, …}. `probe`: of an order of that kind, what
    the node is to do with its only input or download: {"work": "test" or "list", "upload", "ticket"}.
    `checkpoint`: None = an older hub, which keeps none. `inputs`: the absolute path on the node of each input
    that lies there, by its name; `mounts`: the inputs in shares that the node mounts; `downloads`: the inputs
    that the node downloads first; `references`: those of which the script gets addresses; `lists`: which
    files some of `inputs` and `mounts` must have. `outputs`: where this node writes what is in outputs/;
    None = to the hub."""

    run: str
    attempt: int
    command: NodeCommand
    environment: EnvironmentSpec
    snapshot: str
    snapshot_size: int
    values: Mapping[str, str] = field(default_factory=dict)
    masked: tuple[str, ...] = ()
    timeout_s: int | None = None
    grace_s: int = 10
    head: bool = True
    go: bool = True
    memory_bytes: int | None = None
    cpus: float | None = None
    disk_bytes: int | None = None
    person: str | None = None
    package_index: str = ""
    package_ticket: str = ""
    kind: str = OrderKind.RUN
    image_registry: ImageRegistry | None = None
    make: Mapping[str, Any] = field(default_factory=dict)
    probe: Mapping[str, str] = field(default_factory=dict)
    checkpoint: CheckpointOrder | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    downloads: Mapping[str, DataDownload] = field(default_factory=dict)
    lists: Mapping[str, InputList] = field(default_factory=dict)
    outputs: StoreFolder | None = None
    mounts: Mapping[str, InputMount] = field(default_factory=dict)
    references: Mapping[str, DataDownload] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        packages = {"package_index": self.package_index, "package_ticket": self.package_ticket}
        later = {
            "memory_bytes": self.memory_bytes,
            "cpus": self.cpus,
            "disk_bytes": self.disk_bytes,
            "person": self.person,
            **(packages if self.package_index else {}),
            "image_registry": asdict(self.image_registry) if self.image_registry else None,
            "make": dict(self.make) or None,
            "probe": dict(self.probe) or None,
            "checkpoint": self.checkpoint.to_json() if self.checkpoint else None,
            "inputs": dict(self.inputs) or None,
            "downloads": {name: item.to_json() for name, item in self.downloads.items()} or None,
            "lists": {name: item.to_json() for name, item in self.lists.items()} or None,
            "outputs": self.outputs.to_json() if self.outputs else None,
            "mounts": {name: item.to_json() for name, item in self.mounts.items()} or None,
            "references": {name: item.to_json() for name, item in self.references.items()} or None,
        }
        # Left out for runs, so that what earlier versions read and stored looks as before.
        kind = {} if self.kind == OrderKind.RUN else {"kind": str(self.kind)}
        return (
            kind
            | {name: value for name, value in later.items() if value is not None}
            | {
                "version": VERSION,
                "run": self.run,
                "attempt": self.attempt,
                "command": command_to_json(self.command),
                "environment": self.environment.to_json(),
                "snapshot": self.snapshot,
                "snapshot_size": self.snapshot_size,
                "values": dict(self.values),
                "masked": list(self.masked),
                "timeout_s": self.timeout_s,
                "grace_s": self.grace_s,
                "head": self.head,
                "go": self.go,
            }
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> NodeOrder:
        return cls(
            run=data["run"],
            attempt=data["attempt"],
            command=command_from_json(data["command"]),
            environment=EnvironmentSpec.from_json(data["environment"]),
            snapshot=data["snapshot"],
            snapshot_size=data["snapshot_size"],
            values=dict(data["values"]),
            masked=tuple(data["masked"]),
            timeout_s=data["timeout_s"],
            grace_s=data["grace_s"],
            head=data["head"],
            # An upgraded agent still reads orders that an older version stored, which had no `go` and might
            # start.
            go=data.get("go", True),
            memory_bytes=data.get("memory_bytes"),
            cpus=data.get("cpus"),
            disk_bytes=data.get("disk_bytes"),
            person=data.get("person"),
            package_index=data.get("package_index", ""),
            package_ticket=data.get("package_ticket", ""),
            kind=data.get("kind", OrderKind.RUN),
            image_registry=_image_registry(data.get("image_registry")),
            make=dict(data.get("make") or {}),
            probe=dict(data.get("probe") or {}),
            checkpoint=CheckpointOrder.from_json(data["checkpoint"]) if data.get("checkpoint") else None,
            inputs=dict(data.get("inputs", {})),
            downloads=_downloads(data.get("downloads", {})),
            references=_downloads(data.get("references", {})),
            lists={name: InputList.from_json(item) for name, item in data.get("lists", {}).items()},
            outputs=StoreFolder.from_json(data["outputs"]) if data.get("outputs") else None,
            mounts={name: InputMount.from_json(item) for name, item in data.get("mounts", {}).items()},
        )


def _downloads(data: Mapping[str, Any]) -> dict[str, DataDownload]:
    return {name: DataDownload.from_json(item) for name, item in data.items()}


def _image_registry(data: Mapping[str, Any] | None) -> ImageRegistry | None:
    return ImageRegistry(data["address"], data["token"]) if data else None

"""NodeOrder: the answer to a claim; all that a node needs to run its part of one attempt."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainhub_launch.plan import NodeCommand, command_from_json, command_to_json

VERSION = 2


@dataclass(frozen=True)
class EnvironmentSpec:
    """The software of a run. `kind` `system`: the interpreter `python` as it is; `venv`: a cached
    virtual environment made from `requirements` with pip, `python` = its base interpreter ("" = the
    node's default). `index_urls`: first is pip's index, the others extra ones."""

    name: str
    version: str
    kind: str
    python: str = ""
    requirements: tuple[str, ...] = ()
    index_urls: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Names the cache folder: equal content, equal environment, whatever it is called."""
        content = [self.kind, self.python, sorted(self.requirements), list(self.index_urls)]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:20]

    def to_json(self) -> dict[str, Any]:
        return {
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
        )


@dataclass(frozen=True)
class NodeOrder:
    """`values`: what every Reference of the plan stands for, keyed `secret:NAME` and `launch:NAME`.

    The node itself adds launch:work_dir and launch:node_dir. `masked`: values never to be shown.
    `go`: whether the processes may start. An order of several nodes comes twice: first without it (`command`
    is provisional, and all is to be made ready), then, once every node is ready, with it and the final
    `command`."""

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

    def to_json(self) -> dict[str, Any]:
        return {
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
            # A node that is upgraded takes up what an agent before this word was told.
            go=data.get("go", True),
        )

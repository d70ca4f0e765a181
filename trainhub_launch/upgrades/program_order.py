"""The hub's order to a node to run another version of the node program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from trainhub_launch.json_types import JsonObject
from trainhub_launch.wire import read

# So that a signature of the same key for something else is never one of an order.
_PURPOSE = b"trainhub node program order 1\n"
# The steps of an order that a node reports, in this order; it ends with one of the last two.
FETCHING, INSTALLING, RESTARTING = "fetching", "installing", "restarting"
DONE, FAILED = "done", "failed"
STEPS = (FETCHING, INSTALLING, RESTARTING)
ENDS = (DONE, FAILED)


@dataclass(frozen=True)
class ProgramOrder:
    """`order`: its number at the hub; `node`: the name of the node that it is for. `version` of the program,
    whose archive has `size` bytes with this `sha256`. `machine`: the kind of processor of its compiled parts,
    such as "x86_64"; `python`: the oldest Python that runs it, such as "3.11". `may_go_back`: whether the
    version may be older than the node's. `key`: the hub's public Ed25519 key, and `signature` what it has
    made of everything else, both in hexadecimal digits."""

    order: int
    node: str
    version: str
    sha256: str
    size: int
    machine: str
    python: str
    may_go_back: bool = False
    key: str = ""
    signature: str = ""

    def signed_bytes(self) -> bytes:
        content = asdict(replace(self, key="", signature=""))
        return _PURPOSE + json.dumps(content, sort_keys=True).encode()

    def to_json(self) -> JsonObject:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ProgramOrder:
        """Raises WireError or TypeError for anything else."""
        return read(cls, data)


def release_numbers(version: str) -> tuple[int, ...]:
    """Returns the numbers of a version, by which older and newer ones are told apart."""
    return tuple(int(part) for part in version.split(".") if part.isdecimal())

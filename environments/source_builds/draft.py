"""What a node is told to build: wheels of packages that are on their index only as source."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

# The name under which nodes know this work.
WORK = "wheels"


@dataclass(frozen=True)
class PackageBuild:
    """One package. `filename`, `sha256`: of its source distribution. `variables`: of the build. `programs`:
    those that the node must have, each with the Debian package that has it. `compiler_flags`: what the C++
    compiler gets behind its own arguments, where these match a pattern: (patterns, flags). `checks`: Python
    code that must run in an environment with the wheel. `build_key`: the SHA-256 of all that goes into the
    wheel. `origin`: the repository with the commit from which the source is, "" for one of an index.
    `is_version_built`: the wheel has the real version, which its source does not show."""

    name: str
    version: str
    filename: str
    sha256: str
    build_key: str
    variables: Mapping[str, str] = field(default_factory=dict)
    programs: Sequence[tuple[str, str]] = ()
    compiler_flags: Sequence[tuple[Sequence[str], Sequence[str]]] = ()
    checks: Sequence[str] = ()
    origin: str = ""
    is_version_built: bool = False


@dataclass(frozen=True)
class WheelDraft:
    """`lock`: all other packages of the environment, as wheels; `build_lock`: all packages of the environment
    in which the builds happen."""

    lock: str
    build_lock: str
    packages: tuple[PackageBuild, ...]

    def to_json(self) -> dict[str, Any]:
        return {"kind": WORK, **asdict(self)}


def read_wheel_draft(text: str) -> WheelDraft:
    """Raises ValueError, KeyError or TypeError for anything that `WheelDraft.to_json` has not made."""
    data: dict[str, Any] = json.loads(text)
    packages = tuple(PackageBuild(**item) for item in data["packages"])
    return WheelDraft(data["lock"], data["build_lock"], packages)

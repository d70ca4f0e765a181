"""Findings about a spec, said shortly."""

from __future__ import annotations

from typing import Any

from tests.launch.builders import make_node, make_spec
from trainhub_launch.findings import Finding
from trainhub_launch.planner.draft import draft_plan
from trainhub_launch.planner.validation import validate
from trainhub_launch.scheduler.placement import FreeNode
from trainhub_launch.spec import Resources, RunSpec

ROOMY = tuple(make_node(f"gpu-{n}", gpus=8, slots=64, address=f"10.0.0.{n}") for n in range(1, 5))
FILES = ("train.py", "src/model.py", "data/words.txt")


def found(
    spec: RunSpec, *, paths: tuple[str, ...] | None = FILES, nodes: tuple[FreeNode, ...] = ROOMY, **rest: Any
) -> list[Finding]:
    return list(validate(draft_plan(spec, nodes), paths=paths, **rest))


def one(spec: RunSpec, field: str, **rest: Any) -> Finding:
    """The only finding about `field`."""
    (finding,) = [finding for finding in found(spec, **rest) if finding.field == field]
    return finding


def command(line: str, distribution: Any = None, gpus: int = 0) -> RunSpec:
    return make_spec(
        distribution, command=tuple(line.split()), resources=Resources("local", gpus_per_node=gpus)
    )


def script(line: str, distribution: Any = None, gpus: int = 0, name: str = "train.py") -> RunSpec:
    return make_spec(
        distribution,
        script=name,
        arguments=tuple(line.split()),
        resources=Resources("local", gpus_per_node=gpus),
    )

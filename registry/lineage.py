"""Prepares a birth certificate's origin for the version's page: data -> source -> run -> version. It has no
side effects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAX_ROWS = 200
JsonObject = dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """A metric's last value as text, as the certificate contains it."""

    key: str
    value: str
    step: int

    @property
    def short(self) -> str:
        return f"{float(self.value):.6g}"


@dataclass(frozen=True)
class Lineage:
    """The origin of a version. `created_in` is the run with the machines: the job, if `run` was logged by a
    process of a job.

    `run` and `created_in` are None for an uploaded version.
    """

    inputs: list[JsonObject]
    snapshot: JsonObject | None
    git: JsonObject | None
    environment: JsonObject | None
    nodes: list[JsonObject]
    run: JsonObject | None
    created_in: JsonObject | None
    logged_model: JsonObject | None
    parent: JsonObject | None
    params: list[tuple[str, str]]
    metrics: list[Measured]

    @property
    def gpus(self) -> list[str]:
        """Numbers and names of the GPUs, such as `4 × NVIDIA H100`."""
        names = Counter(gpu.get("name") or "a GPU" for node in self.nodes for gpu in node["gpus"])
        return [f"{count} × {name}" for name, count in names.items()]

    @property
    def drivers(self) -> list[str]:
        return sorted({node["driver"] for node in self.nodes if node["driver"]})


def drawn(origin: Mapping[str, Any]) -> Lineage:
    """Returns the lineage of a certificate's `origin`."""
    run: JsonObject = origin.get("run") or {}
    # A run that a job's process logged has the job's facts under `job`: snapshot, environment and machines
    # are that job's.
    created_in: JsonObject = run.get("job") or run
    logged = origin.get("logged_model")
    params = {**(logged or {}).get("params", {}), **created_in.get("params", {}), **run.get("params", {})}
    metrics = {**created_in.get("metrics", {}), **run.get("metrics", {})}
    measured = [Measured(key, str(item["value"]), item["step"]) for key, item in sorted(metrics.items())]
    return Lineage(
        inputs=[*run.get("inputs", []), *(created_in.get("inputs", []) if created_in is not run else [])],
        snapshot=created_in.get("snapshot"),
        git=run.get("git") or created_in.get("git"),
        environment=created_in.get("environment"),
        nodes=created_in.get("nodes", []),
        run=run or None,
        created_in=created_in or None,
        logged_model=logged,
        parent=origin.get("parent"),
        params=sorted(params.items())[:MAX_ROWS],
        metrics=measured[:MAX_ROWS],
    )

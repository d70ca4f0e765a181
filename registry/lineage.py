"""What a birth certificate tells, as a page draws it: data -> source -> run -> version. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MOST_ROWS = 200
Told = dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """A metric's last value, as it is in the certificate and short for the eye."""

    key: str
    value: str
    step: int

    @property
    def short(self) -> str:
        try:
            return f"{float(self.value):.6g}"
        except ValueError:
            return self.value


@dataclass(frozen=True)
class Lineage:
    """`made` is the run with the machines: the job of a run that a job's process logged. None for a version
    of an upload."""

    inputs: list[Told]
    snapshot: Told | None
    git: Told | None
    environment: Told | None
    nodes: list[Told]
    run: Told | None
    made: Told | None
    logged_model: Told | None
    parent: Told | None
    params: list[tuple[str, str]]
    metrics: list[Measured]

    @property
    def gpus(self) -> list[str]:
        """Such as `4 × NVIDIA H100`."""
        names = Counter(gpu.get("name") or "a GPU" for node in self.nodes for gpu in node["gpus"])
        return [f"{count} × {name}" for name, count in names.items()]

    @property
    def drivers(self) -> list[str]:
        return sorted({node["driver"] for node in self.nodes if node["driver"]})


def drawn(origin: Mapping[str, Any]) -> Lineage:
    """Of a certificate's `origin`."""
    run: Told = origin.get("run") or {}
    made: Told = run.get("job") or run
    logged = origin.get("logged_model")
    params = {**(logged or {}).get("params", {}), **made.get("params", {}), **run.get("params", {})}
    metrics = {**made.get("metrics", {}), **run.get("metrics", {})}
    measured = [Measured(key, str(item["value"]), item["step"]) for key, item in sorted(metrics.items())]
    return Lineage(
        inputs=[*run.get("inputs", []), *(made.get("inputs", []) if made is not run else [])],
        snapshot=made.get("snapshot"),
        git=run.get("git") or made.get("git"),
        environment=made.get("environment"),
        nodes=made.get("nodes", []),
        run=run or None,
        made=made or None,
        logged_model=logged,
        parent=origin.get("parent"),
        params=sorted(params.items())[:MOST_ROWS],
        metrics=measured[:MOST_ROWS],
    )

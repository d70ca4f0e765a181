"""Counts of GPUs by model."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from clusters.models import Gpu, Node
from trainhub_launch.gpus.catalogue import GpuModel, model_of, order


@dataclass(frozen=True)
class ModelCount:
    """The number of GPUs of one model. `name` as the devices report it; `model` if it is in the catalogue."""

    name: str
    count: int
    memory_bytes: int | None
    model: GpuModel | None


def gpu_names(nodes: Iterable[str]) -> dict[str, str]:
    """Returns node name -> the most common name of its GPUs."""
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    devices = Gpu.objects.filter(node__name__in=list(nodes), present=True, parent="")
    for node, name in devices.values_list("node__name", "name"):
        counted[node][name] += 1
    return {node: names.most_common(1)[0][0] for node, names in counted.items()}


def count_models(nodes: Iterable[Node]) -> tuple[ModelCount, ...]:
    """Returns the counts of physical GPUs of these nodes by model, the slowest first."""
    devices = Gpu.objects.filter(node__in=list(nodes), present=True, parent="").values_list(
        "name", "memory_bytes"
    )
    counted: Counter[str] = Counter()
    memory: dict[str, int | None] = {}
    for name, size in devices:
        counted[name] += 1
        memory[name] = size
    return tuple(
        ModelCount(name, counted[name], memory[name], model_of(name))
        for name in sorted(counted, key=lambda name: (order(name), name))
    )

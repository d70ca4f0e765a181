"""Scale up before you scale out: fewer and faster GPUs on one machine need no network between them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from trainhub_launch.findings.finding import Finding
from trainhub_launch.gpus.catalogue import GpuModel, model_of
from trainhub_launch.scheduler.capacity import Demand, FreeNode, counted

Clusters = Mapping[str, tuple[FreeNode, ...]]


def scaling_up(
    demand: Demand, cluster: str, clusters: Clusters, devices: Mapping[str, str]
) -> Iterator[Finding]:
    """`cluster`: the name of the run's own. `clusters`: every one that the workspace may use, with its nodes.
    `devices`: node -> the name of its GPUs."""
    if demand.nodes < 2 or not demand.gpus:
        return
    on_one_node = _on_one_node(demand, clusters.get(cluster, ()))
    hint = on_one_node or _on_faster_ones(demand, cluster, clusters, devices)
    if hint is not None:
        yield hint


def _on_one_node(wanted: Demand, nodes: tuple[FreeNode, ...]) -> Finding | None:
    total = wanted.nodes * wanted.gpus
    large = [node for node in nodes if node.gpus_total >= total]
    if not large:
        return None
    return Finding(
        "hint",
        wanted.nodes_field,
        f"node {large[0].name} has {counted(large[0].gpus_total, 'GPU')}: as one node with {total} "
        f"GPUs instead of {wanted.nodes} with {wanted.gpus}, the ranks need no network between them; scale "
        "up before you scale "
        "out",
    )


def _on_faster_ones(
    wanted: Demand, here: str, clusters: Clusters, devices: Mapping[str, str]
) -> Finding | None:
    own = _models(clusters.get(here, ()), devices)
    if not own:
        return None
    mine = min(own.values(), key=lambda model: model.peak_tflops)
    total = wanted.nodes * wanted.gpus
    for name, nodes in clusters.items():
        for node, model in _models(nodes, devices).items() if name != here else ():
            enough = math.ceil(total * mine.peak_tflops / model.peak_tflops)
            if model.peak_tflops > mine.peak_tflops and enough <= node.gpus_total and enough < total:
                return Finding(
                    "hint",
                    "resources.cluster",
                    f"{counted(enough, model.name)} of cluster {name} can do at their peak what "
                    f"{counted(total, mine.name)} can, on one node and without a network in between; scale "
                    "up before you scale "
                    "out",
                )
    return None


def _models(nodes: tuple[FreeNode, ...], devices: Mapping[str, str]) -> dict[FreeNode, GpuModel]:
    found = {node: model_of(devices.get(node.name, "")) for node in nodes if node.gpus_total}
    return {node: model for node, model in found.items() if model is not None}

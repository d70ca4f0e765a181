"""Suggests fewer or faster GPUs on one machine, where the ranks need no network, instead of several nodes."""

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
    """Yields at most one hint.

    `cluster`: the name of the run's cluster. `clusters`: name -> nodes of every cluster that the workspace
    may use. `devices`: name of a node -> model name of its GPUs."""
    if demand.nodes < 2 or not demand.gpus:
        return
    on_one_node = _on_one_node(demand, clusters.get(cluster, ()))
    hint = on_one_node or _on_faster_ones(demand, cluster, clusters, devices)
    if hint is not None:
        yield hint


def _on_one_node(demand: Demand, nodes: tuple[FreeNode, ...]) -> Finding | None:
    total = demand.nodes * demand.gpus
    large = [node for node in nodes if node.gpus_total >= total]
    if not large:
        return None
    return Finding(
        "hint",
        demand.nodes_field,
        f"node {large[0].name} has {counted(large[0].gpus_total, 'GPU')}: as one node with {total} "
        f"GPUs instead of {demand.nodes} with {demand.gpus}, the ranks need no network between them; scale "
        "up before you scale out",
    )


def _on_faster_ones(
    demand: Demand, here: str, clusters: Clusters, devices: Mapping[str, str]
) -> Finding | None:
    own = _models(clusters.get(here, ()), devices)
    if not own:
        return None
    # A cluster with several models runs at the pace of the slowest one, so that one is the base of the
    # comparison.
    mine = min(own.values(), key=lambda model: model.peak_tflops)
    total = demand.nodes * demand.gpus
    for name, nodes in clusters.items():
        for node, model in _models(nodes, devices).items() if name != here else ():
            enough = math.ceil(total * mine.peak_tflops / model.peak_tflops)
            # At most the GPUs of one node, and fewer than the run requests: otherwise the network would not
            # be saved.
            if model.peak_tflops > mine.peak_tflops and enough <= node.gpus_total and enough < total:
                return Finding(
                    "hint",
                    "resources.cluster",
                    f"{counted(enough, model.name)} of cluster {name} can match the peak performance of "
                    f"{counted(total, mine.name)}, on one node and without a network in between; scale "
                    "up before you scale out",
                )
    return None


def _models(nodes: tuple[FreeNode, ...], devices: Mapping[str, str]) -> dict[FreeNode, GpuModel]:
    models = {node: model_of(devices.get(node.name, "")) for node in nodes if node.gpus_total}
    return {node: model for node, model in models.items() if model is not None}

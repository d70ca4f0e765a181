"""The tab of a run's page with the GPUs and machines of an attempt over time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.db.models import Max
from django.http import HttpRequest

from clusters.charts import GPU, HOST, chart_config
from clusters.models import Gpu, Node
from jobs.models import AttemptNode, Member, Run
from jobs.reading.rank_rows import RankRow, rank_rows
from jobs.reading.starving import read_node_load, starving_sentence
from jobs.states import FINAL

ALL = "all"
# Whose load is read for the sentence about waiting GPUs.
MAX_NODES = 8
METRICS = ("utilization_pct", "memory_used_bytes", "power_w", "temperature_c")


@dataclass(frozen=True)
class Placed:
    """A GPU of the run's nodes with the ranks that use it.

    `ranks` is empty if the GPU is free or used by another run. `numbers`: the latest value of each of
    METRICS, None if unknown."""

    gpu: Gpu
    node: Node
    ranks: tuple[int, ...]
    numbers: dict[str, float | None]

    @property
    def label(self) -> str:
        words = f"rank{'s' if len(self.ranks) > 1 else ''} {', '.join(str(rank) for rank in self.ranks)}"
        return f"{words} · {self.where}" if self.ranks else self.where

    @property
    def where(self) -> str:
        return f"{self.node.name} GPU {self.gpu.index}"


def context(run: Run, attempt: int, request: HttpRequest) -> dict[str, Any]:
    """Returns the template context of the tab.

    `reads`: how fast its ranks read now; `starving`: that GPUs seem to wait for data, "" if they do not.
    `placed`: the GPUs to draw, those of the run first; all GPUs of its nodes with `?gpus=all`. `is_live`:
    whether the attempt still produces measurements."""
    parts = (
        AttemptNode.objects.filter(attempt__run=run, attempt__number=attempt)
        .select_related("node")
        .order_by("node_rank")
    )
    nodes = [part.node for part in parts]
    shows_all = request.GET.get("gpus") == ALL
    is_live = run.state not in FINAL and attempt == run.attempt
    owned = placed(run, attempt, nodes)
    rows = rank_rows(run, attempt, nodes) if is_live else []
    visible = [item for item in owned if item.ranks or shows_all]
    query = urlencode({"attempt": attempt, "all_gpus": int(shows_all)})
    return {
        "placed": visible,
        "nodes_of_run": nodes,
        "has_gpus": any(item.ranks for item in owned),
        "shows_all": shows_all,
        "is_live": is_live,
        "reads": rows,
        "starving": _starving(owned, nodes, rows, _last_start(run, attempt)),
        "charts": chart_config(
            [item.gpu for item in visible],
            nodes={node.name: node.memory_bytes for node in nodes},
            scopes=(GPU, HOST) if visible else (HOST,),
            labels={item.gpu.uuid: item.label for item in visible},
        ),
        "series": f"/api/v1/runs/{run.pk}/series/?{query}",
        "followed": ",".join(node.name for node in nodes) if is_live else "",
    }


def _starving(
    owned: Iterable[Placed], nodes: Iterable[Node], rows: list[RankRow], since: datetime | None
) -> str:
    gpus: dict[int, list[str]] = defaultdict(list)
    for item in owned:
        if item.ranks:
            gpus[item.node.pk].append(item.gpu.uuid)
    if not rows or not gpus or since is None:
        return ""
    owners = [node for node in nodes if node.pk in gpus][:MAX_NODES]
    loads = [read_node_load(node, gpus[node.pk], since.timestamp()) for node in owners]
    return starving_sentence(loads, rows)


def _last_start(run: Run, attempt: int) -> datetime | None:
    """Returns when the last rank of the attempt started."""
    members = Member.objects.filter(attempt__run=run, attempt__number=attempt)
    last: datetime | None = members.aggregate(last=Max("started_at"))["last"]
    return last


def placed(run: Run, attempt: int, nodes: Iterable[Node]) -> list[Placed]:
    """Returns every GPU of the nodes, first those that ranks use, in the order of the ranks."""
    by_id = {node.pk: node for node in nodes}
    ranks = ranks_of(run, attempt)
    placed = [
        Placed(gpu, by_id[gpu.node_id], ranks.get(gpu.uuid, ()), _latest(gpu, by_id[gpu.node_id]))
        # GPUs that are absent by now stay in the list, because the attempt may have measurements of them.
        for gpu in Gpu.objects.filter(node__in=by_id, mig=False)
    ]
    return sorted(placed, key=lambda item: (not item.ranks, item.ranks, item.node.name, item.gpu.index))


def ranks_of(run: Run, attempt: int) -> dict[str, tuple[int, ...]]:
    """Returns GPU UUID -> ranks of the attempt that use this GPU, in ascending order."""
    by_gpu: dict[str, list[int]] = defaultdict(list)
    members = Member.objects.filter(attempt__run=run, attempt__number=attempt).order_by("rank")
    for rank, gpus in members.values_list("rank", "gpus"):
        for uuid in gpus:
            by_gpu[uuid].append(rank)
    return {uuid: tuple(ranks) for uuid, ranks in by_gpu.items()}


def _latest(gpu: Gpu, node: Node) -> dict[str, float | None]:
    values = node.vitals.get("gpus", {}).get(gpu.uuid, {})
    return {key: values.get(key) for key in METRICS}

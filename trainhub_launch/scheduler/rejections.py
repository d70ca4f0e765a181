"""The sentences that explain to a run's owner why it gets no placement."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from trainhub_launch.scheduler.capabilities import unmet_capabilities
from trainhub_launch.scheduler.capacity import Demand, FreeNode, Hold, NodeWindow, counted, words
from trainhub_launch.scheduler.data_rejections import never_room, no_room_now
from trainhub_launch.scheduler.data_room import total_bytes
from trainhub_launch.scheduler.lacking import lacking_phrase
from trainhub_launch.scheduler.sizes import bytes_text
from trainhub_launch.scheduler.whole_nodes import too_few_equal_nodes

MAX_NAMED = 6
_ENOUGH_TO_READ = 4
GPUS_FIELD = "resources.gpus_per_node"


@dataclass(frozen=True)
class Refusal:
    """Why a run gets no placement. `permanent`: even if all resources of the present nodes become free, it
    will not fit."""

    sentence: str
    field: str
    permanent: bool


def never(demand: Demand, nodes: Sequence[FreeNode]) -> Refusal:
    """Returns the refusal for a cluster that is too small, with what would fit instead."""
    without_data = replace(demand, data=frozenset())
    others = [node for node in nodes if node.can_ever(without_data)]
    if demand.data and len(others) >= demand.nodes:
        return Refusal(never_room(demand, others), "inputs", permanent=True)
    if demand.is_limited and _fits_without_limits(demand, nodes):
        return _too_little(demand, nodes)
    if demand.all_gpus is not None and not demand.slots:
        return Refusal(too_few_equal_nodes(demand, nodes), GPUS_FIELD, permanent=True)
    able = sorted((node.name for node in nodes if node.can_ever(demand)), key=natural)
    if not able and len(nodes) >= demand.nodes:
        return Refusal(
            f"The run needs {_each(demand)}, {_too_small(demand, nodes)}.", _field(demand), permanent=True
        )
    if len(able) == len(nodes):
        has = "grows to" if any(node.is_coming for node in nodes) else "has"
        there = (
            f"and the cluster {has} {counted(len(nodes), 'node')}; ask for at most "
            f"{counted(len(nodes), 'node')}"
        )
    elif able:
        have = "1 node has" if len(able) == 1 else f"{len(able)} nodes have"
        more = f" and {len(able) - MAX_NAMED} more" if len(able) > MAX_NAMED else ""
        there = (
            f"and only {have} that many: {', '.join(able[:MAX_NAMED])}{more}; ask for "
            f"{_instead(demand, nodes, len(able))}"
        )
    else:
        there = f"and the cluster has {counted(len(nodes), 'node')}, none of which has that many"
    return Refusal(f"The run needs {_each(demand)}, {there}.", demand.nodes_field, permanent=True)


def not_now(demand: Demand, nodes: Sequence[FreeNode]) -> Refusal:
    """Returns the refusal for a cluster that is large enough, or has no node yet. The sentence lists who
    holds the resources, beginning with the node that lacks least."""
    coming = sum(node.is_coming for node in nodes)
    nodes = [node for node in nodes if not node.is_coming]
    if not nodes and coming:
        more = f"up to {counted(coming, 'node')} can be added to it for runs that wait"
        return Refusal(
            f"The cluster has no node that is ready; {more}.", "resources.cluster", permanent=False
        )
    if not nodes:
        return Refusal("The cluster has no node that is ready.", "resources.cluster", permanent=False)
    able = [node for node in nodes if node.can_ever(demand)]
    nearest_first = sorted(able, key=lambda node: _distance(demand, node))
    reasons = ". ".join(_reason(demand, node) for node in nearest_first[:_ENOUGH_TO_READ])
    rest = len(able) - _ENOUGH_TO_READ
    more = (
        f". {counted(rest, 'more node')} {'has' if rest == 1 else 'have'} even less free" if rest > 0 else ""
    )
    return Refusal(f"Waiting for {_each(demand)}: {reasons}{more}.", _field(demand), permanent=False)


@lru_cache(maxsize=20_000)
def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Returns a sort key with which gpu-2 precedes gpu-10. The names of all nodes of a cluster are sorted for
    each run."""
    # Pairs, because text and number may meet at the same place of two names and cannot be compared directly.
    return tuple((int(part) if part.isdecimal() else 0, part) for part in re.split(r"([0-9]+)", name))


def size_range(seconds: float) -> str:
    """Returns a coarse duration, so that a sentence that is repeated often seldom changes."""
    tens = max(10, int(seconds // 10) * 10)
    if tens < 120:
        return f"{tens} s"
    return f"{tens // 60} min" if tens < 7200 else f"{tens // 3600} h"


def _too_small(demand: Demand, nodes: Sequence[FreeNode]) -> str:
    nearest = max(
        nodes,
        key=lambda node: (
            min(node.gpus_total, demand.gpus),
            min(node.slots_total, demand.slots),
            node.gpus_total,
        ),
    )
    has = _amount(nearest.gpus_total if demand.gpus else 0, nearest.slots_total if demand.slots else 0)
    name = "one that can be added" if nearest.is_coming else nearest.name
    sentence = f"and no node has that many; {name} comes nearest with {has}"
    smaller = _of_the_nth(demand, nodes)
    # The advice is only unambiguous if the run needs GPUs or slots, but not both.
    if smaller and not (demand.gpus and demand.slots):
        sentence += f": ask for at most {_of_kind(demand, smaller)} per node"
        enough = -(-demand.nodes * demand.gpus // smaller)
        may_spread = demand.gpus and demand.nodes_field.endswith("node_count")
        if may_spread and sum(node.gpus_total >= smaller for node in nodes) >= enough:
            sentence += f", or for {enough} nodes with {smaller} each"
    return sentence


def _instead(demand: Demand, nodes: Sequence[FreeNode], able: int) -> str:
    fewer = f"at most {counted(able, 'node')}"
    smaller = 0 if demand.gpus and demand.slots else _of_the_nth(demand, nodes)
    return f"{fewer}, or for at most {_of_kind(demand, smaller)} on each" if smaller else fewer


def _of_kind(demand: Demand, count: int) -> str:
    return _amount(count, 0) if demand.gpus else _amount(0, count)


def _of_the_nth(demand: Demand, nodes: Sequence[FreeNode]) -> int:
    """Returns the largest number (of GPUs, or of slots) that as many nodes as the run needs can each give; 0
    if there are too few nodes."""
    totals = sorted((node.gpus_total if demand.gpus else node.slots_total for node in nodes), reverse=True)
    return totals[demand.nodes - 1] if len(totals) >= demand.nodes else 0


def _distance(demand: Demand, node: FreeNode) -> tuple[bool, int, int, tuple[tuple[int, str], ...]]:
    lacking = (max(0, demand.gpus - len(node.gpus)), max(0, demand.slots - node.slots))
    may_not = not node.takes_runs or node.window_before_end(demand) is not None
    may_not |= not node.has_python(demand)
    return (may_not, *lacking, natural(node.name))


def _reason(demand: Demand, node: FreeNode) -> str:
    if node.silent_s is not None:
        return f"{node.name} has not reported for {size_range(node.silent_s)}"
    if node.closed:
        return f"{node.name} {node.closed}"
    window = node.window_before_end(demand)
    if window is not None:
        return _kept_free(demand, node, window)
    if not node.has_python(demand):
        versions = words([interpreter.version for interpreter in node.interpreters])
        return f"{node.name} has no Python {demand.python}, but {versions or 'none'}"
    if len(node.gpus) < demand.gpus:
        return _short(
            node, "GPU", len(node.gpus), node.gpus_total, [(hold, hold.gpus) for hold in node.holds]
        )
    if node.slots < demand.slots:
        return _short(
            node, "process slot", node.slots, node.slots_total, [(hold, hold.slots) for hold in node.holds]
        )
    for capability in unmet_capabilities(demand.capabilities, node.capabilities):
        return f"{node.name} {lacking_phrase(capability, node.capabilities)}"
    if demand.has_secrets and not node.keeps_secrets:
        return f"{node.name} cannot keep secrets: upgrade its agent"
    if demand.is_limited and not node.can_limit(demand):
        return _without_limits(demand, node)
    if demand.disk_bytes and not node.limits_disk:
        return f"{node.name} cannot limit disk: upgrade its agent"
    if node.disk_free is not None and not node.has_disk(demand):
        return f"{node.name} has {bytes_text(node.disk_free)} of disk free"
    if not node.data.can_now(demand.data):
        return no_room_now(demand, node)
    return f"{node.name} has room" if node.holds else f"{node.name} is free"


def _kept_free(demand: Demand, node: FreeNode, window: NodeWindow) -> str:
    sentence = f"{node.name} {window.why}"
    if window.begin_s <= 0:
        return sentence
    if demand.limit_s is None:
        return f"{sentence}, and the run has no time limit (limits.timeout_s) that ends before"
    return f"{sentence}, and the run may take until after its begin"


def _short(node: FreeNode, noun: str, free: int, total: int, holds: list[tuple[Hold, int]]) -> str:
    faulty = _faulty(node) if noun == "GPU" and node.faults else ""
    if faulty and not free:
        sentence = f"{node.name} has {faulty}"
    else:
        sentence = f"{node.name} has {free} of {counted(total, noun)} free"
        sentence += f" and {faulty}" if faulty else ""
    # Runs that are over are reported below: their hold ends with a proof from the node, not with the run.
    holders = list(dict.fromkeys(hold.who for hold, amount in holds if amount and not hold.is_over))
    if holders:
        whose = "they are" if total > 1 else "it is"
        if free or faulty:
            others = total - free - (len(node.faults) if faulty else 0)
            whose = "the other is" if others == 1 else "the others are"
        sentence += f"; {whose} held by {words(holders)}"
    if noun == "GPU" and node.gpus_lost:
        fallen = "has fallen" if node.gpus_lost == 1 else "have fallen"
        sentence += f"; {node.gpus_lost} of {counted(total, noun)} of {node.name} {fallen} off the bus"
    for hold, amount in holds:
        if amount and hold.is_over:
            stay = "stays" if amount == 1 else "stay"
            proof = f"{'it' if holders or free else node.name} confirms that {hold.who} has ended"
            sentence += f"; {counted(amount, noun)} of {node.name} {stay} reserved until {proof}"
    return sentence


def _fits_without_limits(demand: Demand, nodes: Sequence[FreeNode]) -> bool:
    unlimited = replace(demand, memory_bytes=0, cpus=0.0, data=frozenset())
    return sum(node.can_ever(unlimited) for node in nodes) >= demand.nodes


def _too_little(demand: Demand, nodes: Sequence[FreeNode]) -> Refusal:
    """Returns the refusal for a run that asks for more memory or CPU cores than its nodes have."""
    place = demand.nodes - 1
    memory = sorted((node.memory_total for node in nodes), reverse=True)[place]
    cores = sorted((node.cores for node in nodes), reverse=True)[place]
    many = "no node has" if demand.nodes == 1 else f"fewer than {demand.nodes} nodes have"
    if memory < demand.memory_bytes:
        needs, most, field = bytes_text(demand.memory_bytes), bytes_text(memory), "resources.memory"
        what = f"{needs} of memory"
    else:
        most, field = counted(cores, "CPU core"), "resources.cpus"
        what = f"{demand.cpus:g} CPU cores"
    each = "" if demand.nodes == 1 else " on each node"
    return Refusal(
        f"The run needs {what}{each}, and {many} that much; ask for at most {most}.", field, permanent=True
    )


def _without_limits(demand: Demand, node: FreeNode) -> str:
    if not node.has_limits:
        lacks = "upgrade its agent, or see on its page what it lacks"
        return f"{node.name} cannot limit memory and CPU cores: {lacks}"
    if node.memory < demand.memory_bytes:
        return f"{node.name} has {bytes_text(node.memory)} of {bytes_text(node.memory_total)} of memory free"
    return f"{node.name} has {node.cpus:g} of {counted(node.cores, 'CPU core')} free"


def _faulty(node: FreeNode) -> str:
    """Returns "1 GPU free but unhealthy: XID 48"."""
    causes = words(list(dict.fromkeys(node.faults)))
    return f"{counted(len(node.faults), 'GPU')} free but unhealthy: {causes}"


def _field(demand: Demand) -> str:
    return GPUS_FIELD if demand.gpus else "distribution"


def _each(demand: Demand) -> str:
    whole = "all " if demand.all_gpus is not None and demand.gpus > 1 else ""
    parts = [f"{whole}{_amount(demand.gpus, demand.slots)}"]
    parts += [f"{bytes_text(demand.memory_bytes)} of memory"] * (demand.memory_bytes > 0)
    parts += [f"{bytes_text(demand.disk_bytes)} of disk"] * (demand.disk_bytes > 0)
    parts += [f"room for {bytes_text(total_bytes(demand.data))} of data"] * bool(demand.data)
    parts += [f"{demand.cpus:g} CPU core{'' if demand.cpus == 1 else 's'}"] * (demand.cpus > 0)
    return f"{counted(demand.nodes, 'node')} with {words(parts)}{'' if demand.nodes == 1 else ' each'}"


def _amount(gpus: int, slots: int) -> str:
    parts = [counted(gpus, "GPU")] * (gpus > 0) + [counted(slots, "process slot")] * (slots > 0)
    return " and ".join(parts) or "no GPU"

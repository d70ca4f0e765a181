"""What slurmrestd answers (v0.0.38) as values. Every function raises KeyError, TypeError or ValueError for
what cannot be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusters.backends.slurm.hostlist import expand_hostlist
from clusters.backends.slurm.job_status import JobStatus, count_gpus
from clusters.backends.slurm.nodes import Partition, SlurmNode, count_gpus_by_model
from clusters.backends.slurm.states import grace_state, parse_state

Item = Mapping[str, Any]


def job_of_controller(item: Item) -> JobStatus:
    state, _ = parse_state(_text(item, "job_state"))
    if _number(item, "preempt_time"):
        state = grace_state(state)
    # As wait() reports it.
    status = _number(item, "exit_code") or 0
    return JobStatus(
        _id(item),
        state,
        # The description has the details of a reason, where there are some.
        _text(item, "state_description") or _text(item, "state_reason"),
        _nodes(item),
        count_gpus(_text(item, "tres_alloc_str") or _text(item, "tres_req_str")),
        _text(item, "user_name"),
        _text(item, "partition"),
        _number(item, "submit_time"),
        _number(item, "start_time"),
        _number(item, "end_time"),
        restart_count=_number(item, "restart_cnt") or 0,
        exit_code=status >> 8 if state.is_final else None,
        signal=(status & 0x7F) or None if state.is_final else None,
    )


def job_of_accounting(item: Item) -> JobStatus:
    state, _ = parse_state(_text(item["state"], "current"))
    signal, times = item["exit_code"].get("signal") or {}, item["time"]
    canceled_by = _text(item, "kill_request_user") if state.word == "CANCELLED" else ""
    return JobStatus(
        _id(item),
        state,
        _text(item["state"], "reason"),
        _nodes(item),
        sum(
            int(entry["count"])
            for entry in item["tres"]["allocated"]
            if (entry["type"], entry["name"]) == ("gres", "gpu")
        ),
        _text(item, "user"),
        _text(item, "partition"),
        _number(times, "submission"),
        _number(times, "start"),
        _number(times, "end"),
        # Its `return_code` is 0 also for jobs that ended with another one.
        signal=_number(signal, "signal_id") if state.is_final else None,
        canceled_by=canceled_by or None,
    )


def node_of(item: Item) -> SlurmNode:
    words = [_text(item, "state"), *(str(flag) for flag in item["state_flags"])]
    return SlurmNode(
        _text(item, "name"),
        tuple(word.upper().replace(" ", "_") for word in words if word),
        tuple(map(str, item["partitions"])),
        int(item["cpus"]),
        int(item["alloc_cpus"]),
        int(item["real_memory"]),
        int(item["alloc_memory"]),
        count_gpus_by_model(_text(item, "gres")),
        count_gpus_by_model(_text(item, "gres_used")),
        reason=_text(item, "reason"),
        reason_by=_text(item, "reason_set_by_user"),
        reason_at=_number(item, "reason_changed_at"),
    )


def partition_of(item: Item) -> Partition:
    minutes = _number(item, "max_time_limit")
    return Partition(
        _text(item, "name"),
        _text(item, "state") == "UP",
        None if minutes is None else minutes * 60,
        int(item["total_nodes"]),
    )


def _id(item: Item) -> int:
    return int(item["job_id"])


def _text(item: Item, name: str) -> str:
    """Returns "" for null, which stands for what there is not."""
    value = item[name]
    return "" if value is None else str(value)


def _number(item: Item, name: str) -> int | None:
    """Returns None for null, 0 and less, which stand for what there is not."""
    value = item.get(name)
    return int(value) if value is not None and int(value) > 0 else None


def _nodes(item: Item) -> tuple[str, ...]:
    text = _text(item, "nodes")
    return () if text in ("", "(null)", "None assigned") else tuple(expand_hostlist(text))

"""Quotas: whether a run may start under the limits of its workspace and its person. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from trainhub_launch.scheduler.capacity import Demand, counted
from trainhub_launch.scheduler.rejections import GPUS_FIELD, Refusal
from trainhub_launch.scheduler.sizes import bytes_text

GIB = 2**30


@dataclass(frozen=True)
class QuotaBalance:
    """The limits of one workspace or person, and what they use now. A limit of None is none.

    `owner` is worded for sentences: "workspace vision", "carl in workspace vision". `gpu_hours_used` are
    those of the present calendar month. `disk_bytes_used`: as measured last; 0 without a limit."""

    owner: str
    gpus: int | None = None
    gpu_hours: float | None = None
    waiting_runs: int | None = None
    disk_gib: float | None = None
    gpus_held: int = 0
    gpu_hours_used: float = 0.0
    runs_waiting: int = 0
    disk_bytes_used: int = 0

    def with_lease(self, gpus: int) -> QuotaBalance:
        return replace(self, gpus_held=self.gpus_held + gpus)


def quota_refusal(balances: Iterable[QuotaBalance], demand: Demand) -> Refusal | None:
    """Returns why the run may not start now, or never (`permanent`); None if it may."""
    gpus = demand.nodes * demand.gpus
    if not gpus:
        return None
    refusals = [refusal for balance in balances if (refusal := _refusal(balance, gpus))]
    # What can never be is said before what only takes time.
    return min(refusals, key=lambda refusal: not refusal.permanent, default=None)


def excess(balance: QuotaBalance) -> str:
    """Returns a sentence about what is used beyond the limits already, or "" if nothing is."""
    over = []
    files = ""
    if balance.gpus is not None and balance.gpus_held > balance.gpus:
        over.append(f"holds {counted(balance.gpus_held, 'GPU')}, more than {balance.gpus}")
    if balance.gpu_hours is not None and balance.gpu_hours_used > balance.gpu_hours:
        over.append(
            f"has used {balance.gpu_hours_used:.1f} GPU-hours this month, more than {balance.gpu_hours:g}"
        )
    if balance.waiting_runs is not None and balance.runs_waiting > balance.waiting_runs:
        over.append(f"has {counted(balance.runs_waiting, 'waiting run')}, more than {balance.waiting_runs}")
    if balance.disk_gib is not None and balance.disk_bytes_used > balance.disk_gib * GIB:
        files = ", and new files"
        over.append(f"stores {bytes_text(balance.disk_bytes_used)}, more than {_gib_text(balance.disk_gib)}")
    if not over:
        return ""
    what = f"{_capitalized(balance.owner)} {', and '.join(over)}"
    return f"{what}; nothing is stopped, only new runs wait or are refused{files}."


def waiting_refusal(balances: Iterable[QuotaBalance]) -> Refusal | None:
    """Returns why no further run may be submitted, or None."""
    for balance in balances:
        if balance.waiting_runs is not None and balance.runs_waiting >= balance.waiting_runs:
            waiting = counted(balance.runs_waiting, "waiting run")
            return Refusal(
                f"{balance.owner} has {waiting}, and its quota is {balance.waiting_runs}; wait until some "
                "have started, cancel some, or ask an operator for a higher quota",
                "resources.cluster",
                permanent=True,
            )
    return None


def disk_refusal(balances: Iterable[QuotaBalance], size_bytes: int = 0) -> str:
    """Returns why no more files may be stored, or not these `size_bytes` (0: not known), or ""."""
    for balance in balances:
        if balance.disk_gib is None:
            continue
        limit = int(balance.disk_gib * GIB)
        used, quota = bytes_text(balance.disk_bytes_used), _gib_text(balance.disk_gib)
        remedy = (
            "delete runs and have an owner purge them at /runs/deleted/, delete files or versions of models, "
            "or ask an operator for a higher quota"
        )
        if balance.disk_bytes_used >= limit:
            return f"{balance.owner} stores {used}, and its quota of disk is {quota}; {remedy}"
        if balance.disk_bytes_used + size_bytes > limit:
            return (
                f"{balance.owner} stores {used}, and with {bytes_text(size_bytes)} more it would be above "
                f"its quota of disk, {quota}; {remedy}"
            )
    return ""


def _gib_text(gib: float) -> str:
    return bytes_text(int(gib * GIB))


def _refusal(balance: QuotaBalance, gpus: int) -> Refusal | None:
    if balance.gpus is not None and gpus > balance.gpus:
        return Refusal(
            f"The run needs {counted(gpus, 'GPU')}, and the quota of {balance.owner} is {balance.gpus} at "
            "once; ask for fewer GPUs, or ask an operator for a higher quota.",
            GPUS_FIELD,
            permanent=True,
        )
    if balance.gpu_hours == 0:
        return Refusal(
            f"The quota of {balance.owner} is 0 GPU-hours a month; ask an operator for a higher quota.",
            GPUS_FIELD,
            permanent=True,
        )
    if balance.gpu_hours is not None and balance.gpu_hours_used >= balance.gpu_hours:
        return Refusal(
            f"Waiting for the next month, or a higher quota: {balance.owner} has used all of its "
            f"{balance.gpu_hours:g} GPU-hours of this month.",
            GPUS_FIELD,
            permanent=False,
        )
    if balance.gpus is not None and balance.gpus_held + gpus > balance.gpus:
        return Refusal(
            # Without what is held now: a sentence that is the same for long is seldom written.
            f"Waiting for the quota of {balance.owner}, {counted(balance.gpus, 'GPU')} at once: fewer than "
            f"{gpus} of them are left.",
            GPUS_FIELD,
            permanent=False,
        )
    return None


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]

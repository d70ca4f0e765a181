"""The quota of disk: refuses what would store more files for a workspace, or a person in it.

What has begun goes on: the outputs, logs and metrics of runs that are active are always stored."""

from __future__ import annotations

from clusters.models import Quota
from jobs.models import Run
from jobs.quotas import disk_use
from jobs.quotas.quota_check import QuotaBook
from jobs.states import FINAL
from trainhub_launch.errors import SpecError
from trainhub_launch.scheduler.quotas import disk_refusal
from workspaces.models import User, Workspace


class DiskQuotaExceeded(SpecError):
    """The files of the workspace, or of the person, would use more disk than their quota."""


def check_room(
    workspace: Workspace, person: User | None, size_bytes: int = 0, *, run: Run | None = None, field: str
) -> None:
    """Raises DiskQuotaExceeded, naming `field`, if a quota leaves no room for `size_bytes` more (0: not known
    yet); otherwise counts them as used. Files of a `run` count for whoever submitted it, and are let in as
    long as it is active. One query if the workspace has no quota of disk."""
    if not Quota.objects.filter(workspace=workspace).exclude(disk_gib=None).exists():
        return
    owner = person if run is None else run.created_by
    if run is None or run.state in FINAL:
        sentence = refusal(workspace, owner, size_bytes)
        if sentence:
            raise DiskQuotaExceeded(field, sentence)
    if size_bytes:
        disk_use.count_accepted(workspace, None if owner is None else owner.pk, size_bytes)


def refusal(workspace: Workspace, person: User | None, size_bytes: int = 0) -> str:
    """Returns why `size_bytes` more may not be stored, or "". Before it refuses it measures again, unless
    that was done a moment ago."""
    sentence = _refusal(workspace, person, size_bytes)
    if sentence and disk_use.measure_again(workspace):
        sentence = _refusal(workspace, person, size_bytes)
    return sentence


def _refusal(workspace: Workspace, person: User | None, size_bytes: int) -> str:
    balances = QuotaBook(workspace, only_disk=True).balances(workspace, person)
    return disk_refusal(balances, size_bytes)

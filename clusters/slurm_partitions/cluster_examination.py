"""`Test` of a cluster: its settings against its Slurm, and the Unix accounts of its people."""

from __future__ import annotations

import os
import pwd
from collections.abc import Sequence
from urllib.parse import urlsplit

from django.conf import settings

from clusters.allocations import partitions
from clusters.allocations.bounded_commands import BoundedCommands
from clusters.backends.slurm.examination import CheckResult, SlurmCheck, examine
from clusters.models import Cluster, SlurmPartition, UnixAccount
from trainhub_launch.addresses import is_loopback
from trainhub_launch.scheduler.capacity import words

ACCOUNTING = "accounting"
MAX_NAMES = 6


def examine_cluster(cluster: Cluster) -> list[SlurmCheck]:
    """Returns the checks, and remembers whether the Slurm has accounting.

    The submission is tried as one of the people, because the hub itself submits nothing."""
    row = partitions.partition_of(cluster)
    names = list(UnixAccount.objects.filter(cluster=cluster).order_by("name").values_list("name", flat=True))
    usable = [name for name in names if not _trouble_with(name)]
    commands = BoundedCommands(partitions.commands_as(usable[0] if usable else ""))
    checks = examine(partitions.settings_of(row), commands)
    accounting = next((check for check in checks if check.name == ACCOUNTING), None)
    if accounting is not None:
        SlurmPartition.objects.filter(pk=row.pk).update(has_accounting=accounting.result is CheckResult.OK)
    return [*checks, _check_address(), _check_accounts(names)]


def _check_address() -> SlurmCheck:
    """The nodes speak to the hub; whether they reach it is known only once a job runs there."""
    host = urlsplit(settings.API_URL).hostname or ""
    if is_loopback(host):
        return SlurmCheck(
            "hub",
            CheckResult.ERROR,
            f"No node can reach the hub at {settings.API_URL}: start it with OPEN=1.",
        )
    return SlurmCheck("hub", CheckResult.OK, f"Nodes are told to report to {settings.API_URL}.")


def _check_accounts(names: Sequence[str]) -> SlurmCheck:
    if not names:
        return SlurmCheck(
            "accounts",
            CheckResult.WARNING,
            "Nobody has a Unix account here yet, so nobody's runs can be submitted. Enter one below.",
        )
    problems = [trouble for name in sorted(set(names)) if (trouble := _trouble_with(name))]
    if problems:
        rest = f" And {len(problems) - MAX_NAMES} more." if len(problems) > MAX_NAMES else ""
        return SlurmCheck("accounts", CheckResult.ERROR, " ".join(problems[:MAX_NAMES]) + rest)
    accounts = sorted(set(names))
    text = words(accounts) if len(accounts) <= MAX_NAMES else f"all {len(accounts)} accounts"
    return SlurmCheck("accounts", CheckResult.OK, f"The hub can submit as {text}.")


def _trouble_with(name: str) -> str:
    """Returns why the hub cannot submit as this account, "" if it can."""
    try:
        person = pwd.getpwnam(name)
    except KeyError:
        return f"The hub's machine has no account {name}: make it, or enter another one."
    if person.pw_uid == 0:
        return f"The account {name} is root's, and nothing of a person runs as root: enter another one."
    if os.geteuid() not in (0, person.pw_uid):
        return f"The hub does not run as root, so it cannot submit as {name}: start it with RUN_AS=root."
    return ""

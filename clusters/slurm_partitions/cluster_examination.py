"""`Test` of a cluster: its settings against its Slurm, and the Unix accounts of its people."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from django.conf import settings

from clusters.allocations import partitions, relays
from clusters.allocations.bounded_commands import BoundedCommands
from clusters.backends.slurm.errors import SlurmError
from clusters.backends.slurm.examination import CheckResult, SlurmCheck, examine
from clusters.models import Cluster, SlurmPartition, UnixAccount
from clusters.slurm_partitions import account_checks
from clusters.slurm_partitions.relay_checks import check_relay
from trainhub_launch.addresses import is_loopback
from trainhub_launch.scheduler.capacity import words

ACCOUNTING = "accounting"
MAX_NAMES = 6


def examine_cluster(cluster: Cluster) -> list[SlurmCheck]:
    """Returns the checks, and remembers whether the Slurm has accounting.

    The submission is tried as one of the people, because the hub itself submits nothing."""
    row = partitions.partition_of(cluster)
    names = sorted(set(UnixAccount.objects.filter(cluster=cluster).values_list("name", flat=True)))
    login: list[SlurmCheck] = []
    try:
        if partitions.login_host(row) is None:
            problems = account_checks.problems_here(names)
        else:
            login, problems = account_checks.problems_on_login_node(row, names)
        usable = [name for name in names if not problems[name]]
        commands = BoundedCommands(partitions.commands_as(row, usable[0] if usable else ""))
    except SlurmError as error:
        return [SlurmCheck("connection", CheckResult.ERROR, str(error)), _check_road(row)]
    may_submit = bool(usable) or not login
    checks = [*login, *examine(partitions.settings_of(row), commands, may_submit=may_submit)]
    accounting = next((check for check in checks if check.name == ACCOUNTING), None)
    if accounting is not None:
        SlurmPartition.objects.filter(pk=row.pk).update(has_accounting=accounting.result is CheckResult.OK)
    return [*checks, _check_road(row), _check_accounts(problems)]


def _check_road(row: SlurmPartition) -> SlurmCheck:
    """The nodes speak to the hub; whether they reach it is known only once a job runs there."""
    relay = relays.relay_address(row)
    return _check_address() if relay is None else check_relay(row, *relay)


def _check_address() -> SlurmCheck:
    host = urlsplit(settings.API_URL).hostname or ""
    if is_loopback(host):
        return SlurmCheck(
            "hub",
            CheckResult.ERROR,
            f"No node can reach the hub at {settings.API_URL}: start it with OPEN=1.",
        )
    return SlurmCheck("hub", CheckResult.OK, f"Nodes are told to report to {settings.API_URL}.")


def _check_accounts(problems: Mapping[str, str]) -> SlurmCheck:
    """`problems`: account -> why the hub cannot submit as it, "" if it can."""
    if not problems:
        return SlurmCheck(
            "accounts",
            CheckResult.WARNING,
            "Nobody has a Unix account here yet, so nobody's runs can be submitted. Enter one below.",
        )
    sentences = [problem for _, problem in sorted(problems.items()) if problem]
    if sentences:
        rest = f" And {len(sentences) - MAX_NAMES} more." if len(sentences) > MAX_NAMES else ""
        return SlurmCheck("accounts", CheckResult.ERROR, " ".join(sentences[:MAX_NAMES]) + rest)
    accounts = sorted(problems)
    text = words(accounts) if len(accounts) <= MAX_NAMES else f"all {len(accounts)} accounts"
    return SlurmCheck("accounts", CheckResult.OK, f"The hub can submit as {text}.")

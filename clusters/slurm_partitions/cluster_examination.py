"""`Test` of a cluster: its settings against its Slurm, and the Unix accounts of its people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from django.conf import settings

from clusters.allocations import partitions, relays
from clusters.backends.slurm.errors import SlurmError
from clusters.backends.slurm.examination import CheckResult, SlurmCheck, examine
from clusters.models import Cluster, SlurmPartition, UnixAccount
from clusters.slurm_partitions import account_checks, token_checks
from clusters.slurm_partitions.relay_checks import check_relay
from trainhub_launch.addresses import is_loopback
from trainhub_launch.scheduler.capacity import words

ACCOUNTING = "accounting"
MAX_NAMES = 6


def examine_cluster(cluster: Cluster) -> list[SlurmCheck]:
    """Returns the checks, and remembers whether the Slurm has accounting.

    The submission is tried as one of the people, because the hub itself submits nothing."""
    row = partitions.partition_of(cluster)
    try:
        login, problems = _login_and_accounts(row)
        usable = [name for name in sorted(problems) if not problems[name]]
        if usable and not row.rest_url:
            client = partitions.client_of(row, usable[0], None, for_page=True)
        else:
            client = partitions.observer_of(row, for_page=True)
        may_submit = not row.rest_url and (bool(usable) or not login)
        checks = [*login, *examine(partitions.settings_of(row), client, may_submit=may_submit)]
    except SlurmError as error:
        return [SlurmCheck("connection", CheckResult.ERROR, str(error)), _check_road(row)]
    accounting = next((check for check in checks if check.name == ACCOUNTING), None)
    if accounting is not None:
        SlurmPartition.objects.filter(pk=row.pk).update(has_accounting=accounting.result is CheckResult.OK)
    accounts = _check_accounts(problems)
    if row.rest_url and accounts.result is CheckResult.ERROR:
        # Each person's own matter: the cluster itself can be used.
        accounts = replace(accounts, result=CheckResult.WARNING)
    return [*checks, _check_road(row), accounts]


def _login_and_accounts(row: SlurmPartition) -> tuple[list[SlurmCheck], dict[str, str]]:
    """Returns the checks of how the hub gets in, and why it cannot submit as each account, "" if it can."""
    if row.rest_url:
        return token_checks.check_observer(row), token_checks.problems_of_tokens(row)
    accounts = UnixAccount.objects.filter(cluster=row.cluster_id)
    names = sorted(set(accounts.values_list("name", flat=True)))
    if partitions.login_host(row) is None:
        return [], account_checks.problems_here(names)
    return account_checks.problems_on_login_node(row, names)


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

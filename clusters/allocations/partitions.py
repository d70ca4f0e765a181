"""The Slurm of a cluster: its settings as values, and how it is asked as somebody's account."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from clusters.allocations import slurm_tokens
from clusters.allocations.bounded_commands import PAGE_TIMEOUT_S, BoundedCommands
from clusters.allocations.login_keys import login_folder
from clusters.backends.slurm.client import SlurmClient
from clusters.backends.slurm.command_line import CommandLineClient
from clusters.backends.slurm.commands import LocalCommands, SlurmCommands
from clusters.backends.slurm.errors import SlurmError
from clusters.backends.slurm.rest.rest_client import RestClient
from clusters.backends.slurm.settings import CommandHost, SlurmSettings, parse_command_host
from clusters.backends.slurm.ssh_commands import SshCommands
from clusters.models import Cluster, SlurmPartition
from workspaces.models import User


def settings_of(row: SlurmPartition) -> SlurmSettings:
    return SlurmSettings(
        partition=row.partition,
        command_host=row.command_host,
        host_key=row.host_key,
        login_group=row.login_group,
        relay_host=row.relay_host,
        relay_port=row.relay_port,
        rest_url=row.rest_url,
        rest_ca=row.rest_ca,
        account=row.account,
        qos=row.qos,
        default_time_s=row.default_time_s,
        max_time_s=row.max_time_s,
        gres=row.gres or {"": "gpu"},
        shared_folder=row.shared_folder,
        node_cache=row.node_cache,
    )


def partition_of(cluster: Cluster) -> SlurmPartition:
    return SlurmPartition.objects.select_related("cluster").get(cluster=cluster)


def login_host(row: SlurmPartition) -> CommandHost | None:
    """Returns the login node that has Slurm's commands, None if there is none."""
    return parse_command_host(row.command_host)


def commands_as(row: SlurmPartition, account: str = "") -> SlurmCommands:
    """Returns the commands of this Slurm as this Unix account; "" = the hub's own, which only looks. Raises
    SlurmError if the hub's key for the login node cannot be read."""
    host = login_host(row)
    if host is None:
        return LocalCommands(account)
    return SshCommands(host, str(login_folder(row, host)), account)


def observer_of(row: SlurmPartition, *, for_page: bool = False) -> SlurmClient:
    """Returns this Slurm as the hub's own account, which only looks. `for_page`: somebody waits for the
    answer. Raises SlurmError if it cannot even be asked."""
    if row.rest_url:
        calls = slurm_tokens.calls_of_observer(row)
        return RestClient(replace(calls, max_s=PAGE_TIMEOUT_S) if for_page else calls)
    return _by_commands(row, "", for_page=for_page)


def client_of(
    row: SlurmPartition, account: str, person: User | None, *, for_page: bool = False
) -> SlurmClient:
    """Returns this Slurm as the Unix account of a person. Raises SlurmError if it cannot even be asked so."""
    if row.rest_url:
        return RestClient(slurm_tokens.calls_of_person(row, account, person))
    return _by_commands(row, account, for_page=for_page)


def _by_commands(row: SlurmPartition, account: str, *, for_page: bool) -> SlurmClient:
    commands = commands_as(row, account)
    return CommandLineClient(BoundedCommands(commands) if for_page else commands)


def record_trouble(row: SlurmPartition, error: SlurmError | None, now: datetime) -> None:
    """Remembers why the last call failed, or that it did not."""
    trouble = "" if error is None else str(error)
    if trouble != row.trouble:
        row.trouble_since = (row.trouble_since or now) if trouble else None
        row.trouble = trouble
        row.save(update_fields=["trouble", "trouble_since"])

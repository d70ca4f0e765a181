"""The settings of a cluster that is a partition of a Slurm: checked, stored, and as the API shows them.

A call of Slurm happens here only in `check_settings`, outside of any transaction."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from clusters.allocations import login_keys, partitions, slurm_tokens
from clusters.backends.slurm.client import SlurmClient
from clusters.backends.slurm.errors import SlurmError, SlurmFault
from clusters.backends.slurm.host_keys import host_key_request
from clusters.backends.slurm.settings import (
    CommandHost,
    SettingsProblem,
    normalize_host_key,
    parse_command_host,
    validate,
)
from clusters.models import Cluster, SlurmPartition
from trainhub_launch.errors import SpecError

FIELDS = (
    "command_host",
    "host_key",
    "login_group",
    "rest_url",
    "rest_ca",
    "relay_host",
    "relay_port",
    "partition",
    "account",
    "qos",
    "default_time_s",
    "max_time_s",
    "gres",
    "shared_folder",
    "node_cache",
    "python",
)
# Whose changes make a new connection to the login node.
LOGIN_FIELDS = frozenset({"command_host", "host_key"})
# Whose changes lead to another slurmrestd, which must not get the tokens of this one.
REST_FIELDS = frozenset({"rest_url"})
PREFIX = "slurm."
MAX_GPU_MODELS = 32
MAX_GPU_MODEL = 64
MAX_NAMES = 12
# A name in PATH, or an absolute path; neither can be an option.
_PYTHON = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}|/[A-Za-z0-9_./+-]{0,254}")


class PartitionRefused(SpecError):
    """Settings are wrong. `problems` are all of them; field and message are those of the first."""

    def __init__(self, problems: Sequence[SettingsProblem]) -> None:
        self.problems = [SettingsProblem(PREFIX + item.field, item.message) for item in problems]
        super().__init__(self.problems[0].field, self.problems[0].message)


def settings_values(row: SlurmPartition | None) -> dict[str, Any]:
    """Returns all settings by name; those of a new cluster without a row."""
    row = row or SlurmPartition()
    values = {name: getattr(row, name) for name in FIELDS}
    return {**values, "gres": dict(partitions.settings_of(row).gres)}


def check_settings(values: Mapping[str, Any], row: SlurmPartition | None = None) -> dict[str, Any]:
    """Returns all settings: `values`, and for the others those of the row or the defaults.

    Raises PartitionRefused, also if Slurm answers that there is no such partition. A Slurm that does not
    answer refuses nothing: `Test` says so."""
    before = settings_values(row)
    checked = {**before, **values}
    checked["host_key"] = normalize_host_key(checked["host_key"])
    candidate = SlurmPartition(**checked)
    problems = [*_own_problems(checked), *validate(partitions.settings_of(candidate))]
    host = parse_command_host(checked["command_host"])
    if host is not None and not any(item.field in LOGIN_FIELDS for item in problems):
        problems += _host_key_problems(host, checked["host_key"])
    changes = changed_fields(checked, row).keys()
    is_reachable = not (
        (candidate.command_host and LOGIN_FIELDS & changes) or (candidate.rest_url and REST_FIELDS & changes)
    )
    if not problems and is_reachable and checked["partition"] != before["partition"]:
        if row is not None:
            candidate.cluster, candidate.public_key = row.cluster, row.public_key
        problems = _partition_problems(candidate)
    if problems:
        raise PartitionRefused(problems)
    return checked


def store(cluster: Cluster, checked: Mapping[str, Any]) -> None:
    """Stores what `check_settings` has returned, or those of it that change. Raises PartitionRefused if no
    key for the login node can be made."""
    row, _ = SlurmPartition.objects.update_or_create(cluster=cluster, defaults=dict(checked))
    if LOGIN_FIELDS & checked.keys():
        login_keys.remove_files(cluster.pk)
    if REST_FIELDS & checked.keys():
        slurm_tokens.forget_tokens(cluster)
    if row.command_host and not row.public_key:
        try:
            row.public_key = login_keys.make_key(cluster.pk)
        except login_keys.KeyUnavailable as error:
            raise PartitionRefused([SettingsProblem("command_host", str(error))]) from error
        row.save(update_fields=["public_key"])


def changed_fields(checked: Mapping[str, Any], row: SlurmPartition | None) -> dict[str, Any]:
    before = settings_values(row)
    return {name: value for name, value in checked.items() if value != before[name]}


def _own_problems(checked: Mapping[str, Any]) -> list[SettingsProblem]:
    """Returns the problems of what concerns TrainHub alone."""
    problems = []
    if not _PYTHON.fullmatch(checked["python"]) or ".." in checked["python"].split("/"):
        problems.append(
            SettingsProblem("python", "Enter a command such as python3, or an absolute path without spaces.")
        )
    gres = checked["gres"]
    if len(gres) > MAX_GPU_MODELS or any(len(model) > MAX_GPU_MODEL for model in gres):
        problems.append(
            SettingsProblem(
                "gres",
                f"Name {MAX_GPU_MODELS} GPU models at most, each with {MAX_GPU_MODEL} characters at most.",
            )
        )
    return problems


def _host_key_problems(host: CommandHost, host_key: str) -> list[SettingsProblem]:
    """Nothing is trusted because it was seen first: a person compares, and enters the key."""
    return [] if host_key else [SettingsProblem("host_key", host_key_request(host))]


def _partition_problems(candidate: SlurmPartition) -> list[SettingsProblem]:
    try:
        client = partitions.observer_of(candidate, for_page=True)
        client.partition(candidate.partition)
    except SlurmError as error:
        if error.fault is SlurmFault.REFUSED:
            message = f"Slurm has no partition {candidate.partition}{_partition_names(client)}."
            return [SettingsProblem("partition", message)]
    return []


def _partition_names(client: SlurmClient) -> str:
    """Returns the end of a sentence that names the partitions there are, "" if Slurm does not say."""
    try:
        names = client.partition_names()
    except SlurmError:
        return ""
    rest = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return f"; it has {', '.join(names[:MAX_NAMES])}{rest}" if names else ""

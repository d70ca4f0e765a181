"""A cluster that is a partition of a Slurm, in the world of the routes."""

from __future__ import annotations

from typing import Any

from clusters.models import UnixAccount
from tests.clusters.slurm_partitions.builders import make_partition
from workspaces.access import Principal

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBhZzIRTkR5+k5Hl8UEe4A9UBbDdXBqf1PrW3SlR7F0X"


def partition_of(who: Principal) -> dict[str, dict[str, Any]]:
    """Parameters of the routes that only such a cluster has."""
    cluster = make_partition(command_host="hub@login.invalid", host_key=KEY, public_key=KEY)
    UnixAccount.objects.create(cluster=cluster, person=who.user, name="ada")
    paths = [f"{root}clusters/<slug:name>/" for root in ("/", "/api/v1/")]
    values = {"name": cluster.name}
    parts = ("test", "unix-accounts", "login-node", "login-node/rotate-key", "login-node/wrapper")
    tokens = [f"{whose}-token{verb}" for whose in ("slurm", "observer") for verb in ("", "/remove")]
    pages = {f"{paths[0]}{part}/": values for part in tokens}
    return pages | {f"{path}{part}/": values for path in paths for part in parts}

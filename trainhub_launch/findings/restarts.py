"""Checks restarts by the user's own torchrun, which only work with the rendezvous c10d."""

from __future__ import annotations

from collections.abc import Iterator

from trainhub_launch.findings.finding import Finding
from trainhub_launch.processes.elastic import is_dynamic, restarts
from trainhub_launch.processes.launchers import launcher
from trainhub_launch.spec import RunSpec

_C10D = "--rdzv-backend c10d --rdzv-endpoint $MASTER_ADDR:$MASTER_PORT"


def own_restarts(spec: RunSpec, *, sets_master: bool) -> Iterator[Finding]:
    """Yields findings about `--max-restarts`. `sets_master`: every process has MASTER_ADDR and
    MASTER_PORT."""
    user_launcher = launcher(spec.command)
    if user_launcher is None:
        return
    times = restarts(spec)
    if times and not is_dynamic(user_launcher):
        by_master = f"{_C10D} instead of --node-rank, --master-addr and --master-port"
        use = by_master if sets_master else "--standalone"
        yield Finding(
            "warning",
            "command",
            f"--max-restarts {times} mostly hangs or fails without the rendezvous c10d, through which "
            f"torchrun's processes find each other again: use {use}, or leave it out and give limits.retries "
            f"{times}, "
            "which starts the whole run again",
        )
    conf = user_launcher.option("--rdzv-conf")
    if conf is not None and "is_host" not in conf and is_dynamic(user_launcher) and spec.node_count > 1:
        yield Finding(
            "hint",
            "command",
            "--rdzv-conf replaces what TrainHub sets for each node (PET_RDZV_CONF: is_host=1 on node 0, 0 on "
            "the others); without is_host node 0 serves only where its own host name leads to its address",
        )

"""The configuration of a Slurm for tests: short intervals, GPUs that are devices every machine has."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

GPUS_PER_NODE = 4
CPUS_PER_NODE = 4
MEMORY_MB = 4000
CLUSTER = "trainhub"
# A job of this name has to wait while its nodes are made ready.
SLOW_START = "slow-start"
PROLOG = f"""#!/bin/sh
[ "$SLURM_JOB_NAME" != {SLOW_START} ] || sleep 2
"""

PLUGINS = {
    "SlurmUser": "root",
    "SlurmdUser": "root",
    "AuthType": "auth/munge",
    "CredType": "cred/munge",
    "ProctrackType": "proctrack/linuxproc",
    "TaskPlugin": "task/none",
    "JobAcctGatherType": "jobacct_gather/linux",
    "SwitchType": "switch/none",
    "MpiDefault": "none",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_Core_Memory",
    "PriorityType": "priority/basic",
    "PreemptType": "preempt/partition_prio",
    "PreemptMode": "REQUEUE",
    "GresTypes": "gpu",
    "AccountingStorageType": "accounting_storage/none",
}
LIMITS = {
    # More processors per node than this computer has.
    "SlurmdParameters": "config_overrides",
    "SchedulerParameters": "sched_min_interval=10000,sched_interval=1,bf_interval=1,batch_sched_delay=0",
    "ReturnToService": "2",
    "SlurmctldTimeout": "10",
    # Longer than tests keep a busy machine from answering; test_node_loss.py has a shorter one.
    "SlurmdTimeout": "60",
    "KillWait": "2",
    "MinJobAge": "3600",
    "DefMemPerCPU": "300",
    "Licenses": "matlab:1",
}


@dataclass(frozen=True)
class Layout:
    """Where everything lies. `nodes` is name -> (host name, address)."""

    folder: Path
    controller: tuple[str, str]
    nodes: Mapping[str, tuple[str, str]]
    has_accounting: bool
    cpus: int = CPUS_PER_NODE
    limits_memory: bool = False
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def conf(self) -> Path:
        return self.folder / "etc" / "slurm.conf"

    @property
    def socket(self) -> Path:
        return self.folder / "munge" / "munge.sock"

    @property
    def token_key(self) -> Path:
        """With which slurmctld and slurmdbd sign and check tokens."""
        return self.folder / "munge" / "jwt.key"

    @property
    def database(self) -> Path:
        return self.folder / "mariadb" / "socket"


def slurm_conf(layout: Layout) -> str:
    options = PLUGINS | _places(layout) | LIMITS
    if layout.has_accounting:
        options |= {
            "AccountingStorageType": "accounting_storage/slurmdbd",
            "AccountingStorageHost": layout.controller[1],
            # Otherwise clients wait for ever for a munged at the usual place.
            "AccountingStoragePass": str(layout.socket),
            "AccountingStorageTRES": "gres/gpu",
            "AccountingStorageEnforce": "associations,limits,qos",
        }
    if layout.limits_memory:
        options["TaskPlugin"] = "task/cgroup"
    lines = [f"{key}={value}" for key, value in {**options, **layout.options}.items()]
    return "\n".join([*lines, *_node_lines(layout), *_partition_lines(layout)]) + "\n"


def _token_options(layout: Layout) -> dict[str, str]:
    return {"AuthAltTypes": "auth/jwt", "AuthAltParameters": f"jwt_key={layout.token_key}"}


def _places(layout: Layout) -> dict[str, str]:
    folder = layout.folder
    name, address = layout.controller
    return {
        "ClusterName": CLUSTER,
        "SlurmctldHost": f"{name}({address})",
        "AuthInfo": f"socket={layout.socket}",
        **_token_options(layout),
        "StateSaveLocation": f"{folder}/state",
        "SlurmdSpoolDir": f"{folder}/spool/%n",
        "SlurmctldPidFile": f"{folder}/run/slurmctld.pid",
        "SlurmdPidFile": f"{folder}/run/slurmd.%n.pid",
        "SlurmctldLogFile": f"{folder}/log/slurmctld.log",
        "SlurmdLogFile": f"{folder}/log/slurmd.%n.log",
        "PrologSlurmctld": f"{folder}/etc/prolog",
    }


def _node_lines(layout: Layout) -> list[str]:
    return [
        f"NodeName={name} NodeHostname={host} NodeAddr={address} CPUs={layout.cpus} "
        f"RealMemory={MEMORY_MB} Gres=gpu:{GPUS_PER_NODE} State=UNKNOWN"
        for name, (host, address) in layout.nodes.items()
    ]


def _partition_lines(layout: Layout) -> list[str]:
    nodes = ",".join(layout.nodes)
    return [
        f"PartitionName=main Nodes={nodes} Default=YES MaxTime=INFINITE PriorityTier=1 PreemptMode=REQUEUE",
        f"PartitionName=spare Nodes={nodes} MaxTime=INFINITE PriorityTier=1 PreemptMode=CANCEL",
        f"PartitionName=urgent Nodes={nodes} MaxTime=INFINITE PriorityTier=10 PreemptMode=OFF",
        f"PartitionName=short Nodes={nodes} MaxTime=1 PriorityTier=1",
        f"PartitionName=closed Nodes={nodes} MaxTime=INFINITE State=DOWN",
    ]


def slurmdbd_conf(layout: Layout) -> str:
    address = layout.controller[1]
    options: dict[str, object] = {
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={layout.socket}",
        **_token_options(layout),
        "DbdHost": layout.controller[0],
        "DbdAddr": address,
        "SlurmUser": "root",
        "LogFile": layout.folder / "log/slurmdbd.log",
        "PidFile": layout.folder / "run/slurmdbd.pid",
        "StorageType": "accounting_storage/mysql",
        "StorageUser": "root",
        "StorageLoc": "slurm_acct_db",
    }
    return "".join(f"{key}={value}\n" for key, value in options.items())


def write_configuration(layout: Layout) -> None:
    """Write slurm.conf and what belongs beside it."""
    etc = layout.conf.parent
    layout.conf.write_text(slurm_conf(layout))
    if not layout.token_key.exists():
        layout.token_key.touch(0o600)
        layout.token_key.write_bytes(secrets.token_bytes(32))
    # A count without files makes the nodes invalid, and these devices exist on every machine.
    (etc / "gres.conf").write_text(f"Name=gpu File=/dev/tty[0-{GPUS_PER_NODE - 1}]\n")
    # Inside a network namespace /sys/fs/cgroup is empty, and slurmd refuses to start without this line.
    limits = "ConstrainRAMSpace=yes\nConstrainSwapSpace=yes\n" if layout.limits_memory else ""
    (etc / "cgroup.conf").write_text(f"CgroupPlugin=cgroup/v1\n{limits}")
    prolog = etc / "prolog"
    prolog.write_text(PROLOG)
    prolog.chmod(0o755)
    if layout.has_accounting:
        path = etc / "slurmdbd.conf"
        path.write_text(slurmdbd_conf(layout))
        path.chmod(0o600)

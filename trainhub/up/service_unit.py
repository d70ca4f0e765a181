"""The systemd unit that keeps the hub running, from `manage.py unit`."""

from __future__ import annotations

import sys
from pathlib import Path

from trainhub import installation

NAME = "trainhub-hub.service"
SETTINGS_FILE = Path("/etc/trainhub/hub.env")
ACCOUNT = "trainhub"
# Not that of a hub that root starts.
DATA = "trainhub-hub"
_HEAD = """\
# Written by `{program} unit`.
[Unit]
Description=TrainHub
Wants=network-online.target
After=network-online.target postgresql.service valkey-server.service redis-server.service

[Service]
ExecStart={command} up
# Settings, one NAME=value a line; secrets too, so only root may read it.
EnvironmentFile=-{settings}
Restart=on-failure
RestartSec=5
TimeoutStopSec=90
LimitNOFILE=65536
"""
# A hub that takes no runs itself needs nothing of the machine but its data folder and the network.
_CONFINED = """\
# This machine takes no runs: the agent of a node needs rights that the hub must not have.
Environment=LOCAL_NODE=0 DATA_DIR=/var/lib/{data}/data
User={account}
Group={account}
StateDirectory={data}
StateDirectoryMode=0700
UMask=0077
KillMode=mixed
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=yes
ProtectProc=invisible
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
PrivateTmp=yes
PrivateDevices=yes
RemoveIPC=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
"""
# What is kept from the agent is kept from all runs, so nothing is.
_WITH_NODE = """\
# Training outlives the hub: only `up` itself is stopped, which stops its own processes.
# A rank that runs out of memory ends only its own run.
KillMode=process
OOMPolicy=continue
Environment=DATA_DIR={data}
LimitMEMLOCK=infinity
TasksMax=infinity
"""
_FOOT = """
[Install]
WantedBy=multi-user.target
"""


def hub_unit(*, with_node: bool) -> str:
    """Returns the unit for this installation. `with_node`: this machine takes runs, too, so root starts
    it."""
    argv = own_command()
    text = _HEAD.format(
        program=Path(argv[-1]).name, command=" ".join(map(_quoted, argv)), settings=SETTINGS_FILE
    )
    if with_node:
        return text + _WITH_NODE.format(data=_quoted(str(installation.DATA_DIR))) + _FOOT
    return text + _CONFINED.format(account=ACCOUNT, data=DATA) + _FOOT


def own_command() -> list[str]:
    """Returns the command line of `manage.py`, or of `trainhub-hub` where that is installed."""
    return [sys.executable, str(Path(sys.argv[0]).absolute())]


def advice(*, with_node: bool) -> str:
    """Returns the commands that install the unit."""
    lines = []
    if not with_node:
        lines += [
            f"useradd --system --user-group --no-create-home --shell /usr/sbin/nologin {ACCOUNT}",
            f"The data will lie in /var/lib/{DATA}/data, which systemd makes.",
        ]
    option = " --with-node" if with_node else ""
    return "\n".join(
        [
            *lines,
            f"  install -d -m 700 {SETTINGS_FILE.parent} && install -m 600 /dev/null {SETTINGS_FILE}",
            f"  {' '.join(own_command())} unit{option} > /etc/systemd/system/{NAME}",
            f"  systemctl daemon-reload && systemctl enable --now {NAME}",
            f"What it says, with the first password: journalctl -u {NAME}",
        ]
    )


def _quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if escaped != word or " " in word else word

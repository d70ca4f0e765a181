"""The systemd unit that keeps an agent running."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

NAME = "trainhub-node.service"
UNIT = """\
# Written by `trainhub-node unit`.
[Unit]
Description=TrainHub node
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
ExecStart={command}
{environment}Restart=always
RestartSec=5
TimeoutStopSec=30
# Training outlives the agent: only the agent itself is stopped.
# A rank that runs out of memory ends only its own run.
KillMode=process
OOMPolicy=continue
# Training pins memory, and starts many threads and files.
LimitMEMLOCK=infinity
LimitNOFILE=1048576
TasksMax=infinity

[Install]
WantedBy={target}
"""


def unit(folder: Path) -> str:
    """Returns the unit for this interpreter and that folder: a system unit for root, else a user unit."""
    argv = (sys.executable, "-m", "trainhub_node", "run", "--dir", str(folder))
    package = Path(__file__).resolve().parent.parent
    site_packages = {Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib")}
    environment = (
        "" if package in site_packages else f"Environment={quote_unit_word(f'PYTHONPATH={package}')}\n"
    )
    target = "multi-user.target" if os.geteuid() == 0 else "default.target"
    command = " ".join(quote_unit_word(argument).replace("$", "$$") for argument in argv)
    return UNIT.format(command=command, environment=environment, target=target)


def advice(folder: Path) -> str:
    """Returns the commands that install the unit."""
    print_it = f"{sys.executable} -m trainhub_node unit --dir {folder}"
    if os.geteuid() == 0:
        return (
            f"To start with the machine:\n"
            f"  {print_it} > /etc/systemd/system/{NAME}\n"
            f"  systemctl daemon-reload && systemctl enable --now {NAME}\n"
            f"What it says: journalctl -u {NAME}"
        )
    return (
        f"To start with the machine, as this account:\n"
        f"  mkdir -p ~/.config/systemd/user && {print_it} > ~/.config/systemd/user/{NAME}\n"
        f"  systemctl --user daemon-reload && systemctl --user enable --now {NAME}\n"
        f"  loginctl enable-linger   # or it ends when you log out\n"
        f"What it says: journalctl --user -u {NAME}"
    )


def quote_unit_word(word: str) -> str:
    """Returns one word quoted for a unit file, in which % and backslashes have a meaning."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"' if escaped != word or " " in word or not word else word

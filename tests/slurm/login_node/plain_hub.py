"""A hub that is not root and has no Slurm: it reaches one on a login node over ssh."""

from __future__ import annotations

import pwd
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.attacks.server.separated import passable_python
from tests.hosts.bench import NOTHING, HostsHub
from tests.node.accounts import as_account
from tests.slurm.hub import CLUSTER, SlurmHub
from tests.slurm.login import ACCOUNT, GROUP, PORT, LoginHost

# An account that every Linux has, and that no job may belong to.
HUB_ACCOUNT = "daemon"
SLURM_COMMANDS = {"sinfo", "squeue", "scontrol", "sbatch", "scancel", "sacct", "srun", "salloc", "sacctmgr"}


class UnprivilegedHub(HostsHub):
    """It is not root, and there are no commands of Slurm. `place` is a folder that other accounts can pass
    through, as pytest's own are not."""

    is_new = True

    def __init__(self, place: Path, address: str) -> None:
        super().__init__(place / "own" / "data", address, {})
        shutil.chown(place / "own", *_numbers())
        self.console = place / "console"
        self.prefix = tuple(as_account(HUB_ACCOUNT))
        self.python = passable_python(place)
        self.settings |= {
            "LD_LIBRARY_PATH": str(Path(self.python).parent.parent / "lib"),
            "TRAINHUB_NODE_CACHE": str(place / "own" / "cache"),
            "PATH": str(_programs(place / "programs")),
            "HOME": str(place / "own"),
            "SECRETS_KEYRING": str(place / "own" / "keyring" / "keys"),
        }

    @property
    def env(self) -> dict[str, str]:
        roots = {"RUN_AS", "SLURM_CONF", "PYENV_ROOT", "VIRTUAL_ENV"}
        return {name: value for name, value in super().env.items() if name not in roots}


class PlainHub(SlurmHub):
    """As `SlurmHub`. `login` is set up as the hub's answers say. `settings`: further ones of the hub."""

    def __init__(self, login: LoginHost, folder: Path, settings: Mapping[str, str] = NOTHING) -> None:
        super().__init__(login.cluster, folder)
        self.login = login
        self.place = login.cluster.folder / f"hub-{secrets.token_hex(3)}"
        (self.place / "own").mkdir(parents=True)
        self.hub = UnprivilegedHub(self.place, login.cluster.hub_address)
        self.hub.settings |= settings

    @property
    def partition(self) -> dict[str, Any]:
        return {
            **super().partition,
            "command_host": f"{ACCOUNT}@{self.login.machine.address}:{PORT}",
            "host_key": self.login.host_key_line(),
            "login_group": GROUP,
        }

    def prepare_login(self) -> None:
        answer = self.runs.get(f"/clusters/{CLUSTER}/login-node/")
        self.login.run_setup(answer["setup"], answer["wrapper"], "root")

    def test(self) -> dict[str, dict[str, str]]:
        """The checks of its cluster, by name."""
        answer = self.runs.client.post(f"/api/v1/clusters/{CLUSTER}/test/").raise_for_status().json()
        return {check["name"]: check for check in answer["checks"]}


def _programs(folder: Path) -> Path:
    """A folder with all programs of this machine but Slurm's."""
    folder.mkdir()
    for place in (Path("/usr/bin"), Path("/usr/sbin")):
        for program in place.iterdir():
            if program.name not in SLURM_COMMANDS and not (folder / program.name).is_symlink():
                (folder / program.name).symlink_to(program)
    return folder


def _numbers() -> tuple[int, int]:
    entry = pwd.getpwnam(HUB_ACCOUNT)
    return entry.pw_uid, entry.pw_gid

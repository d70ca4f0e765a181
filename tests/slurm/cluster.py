"""A real Slurm: its daemons on machines made of network namespaces, and people with accounts there."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from tests.harness import guard
from tests.hosts import processes
from tests.hosts.machine import KILLED_S, Machine
from tests.hosts.wiring import ETC, Bridge
from tests.hub import eventually
from tests.node.accounts import ADDED, PEOPLE
from tests.slurm import configuration
from tests.slurm.configuration import Layout, slurm_conf

# On a machine that is as busy as tests make it.
STARTED_S = 120.0
PROJECT = Path(__file__).resolve().parent.parent.parent
MEMORY_GROUPS = Path("/sys/fs/cgroup/memory")
# A machine's own part of the memory hierarchy, in place of the empty folder that `ip netns exec` leaves.
MOUNT_MEMORY = """
mount -t tmpfs none /sys/fs/cgroup
mkdir -p /sys/fs/cgroup/all /sys/fs/cgroup/memory
mount -t cgroup -o memory none /sys/fs/cgroup/all
mkdir -p /sys/fs/cgroup/all/$1
mount --bind /sys/fs/cgroup/all/$1 /sys/fs/cgroup/memory
"""
# An empty folder over one that accounts of people cannot enter. In it are those folders again that they need.
OPEN_FOLDER = """
cover=$1 && shift
for path; do mkdir -p "/tmp/covered$path" && mount --bind "$path" "/tmp/covered$path"; done
mount -t tmpfs -o mode=755 none "$cover"
for path; do mkdir -p "$path" && mount --move "/tmp/covered$path" "$path"; done
"""


class SlurmCluster:
    """`nodes` are the machines of n1, n2, …; `controller` runs slurmctld, and is where people log in.
    `limits_memory`: by control groups. `options`: of slurm.conf."""

    def __init__(
        self,
        nodes: int = 3,
        *,
        has_accounting: bool = True,
        cpus: int = configuration.CPUS_PER_NODE,
        limits_memory: bool = MEMORY_GROUPS.is_dir(),
        **options: str,
    ) -> None:
        # Not below /tmp: each machine has its own. Accounts of people must reach the socket of munged.
        self.folder = Path(tempfile.mkdtemp(prefix="th-slurm-", dir="/var/lib"))
        guard.on_exit("rm", "-rf", str(self.folder))
        self._group_removal = [
            "find",
            str(MEMORY_GROUPS / self.folder.name),
            "-depth",
            "-type",
            "d",
            "-delete",
        ]
        guard.on_exit(*self._group_removal)
        self.folder.chmod(0o755)
        self._bridge = Bridge(nodes + 1)
        machines = [
            Machine(self._bridge, number, self.folder / f"tmp{number}", [PROJECT, Path(sys.prefix)])
            for number in self._bridge.machines
        ]
        self.controller = machines[-1]
        self.nodes = {f"n{number}": machine for number, machine in enumerate(machines[:-1], 1)}
        self.layout = Layout(
            self.folder,
            (self.controller.name, self.controller.address),
            {name: (machine.name, machine.address) for name, machine in self.nodes.items()},
            has_accounting,
            cpus=cpus,
            limits_memory=limits_memory,
            options=options,
        )
        self._readable: list[Path] = []

    @property
    def hub_address(self) -> str:
        """Where a hub on the machine of the tests listens for the others."""
        return self._bridge.hub_address

    def start(self) -> SlurmCluster:
        for name in ("etc", "munge", "state", "run", "log", "home"):
            (self.folder / name).mkdir(mode=0o755)
        configuration.write_configuration(self.layout)
        self._bridge.build()
        for machine in (self.controller, *self.nodes.values()):
            self._add_people(machine)
            self._boot(machine)
        self._start_munged()
        if self.layout.has_accounting:
            self._start_database()
        self.start_controller()
        if self.layout.has_accounting:
            self._add_accounts()
        for name in self.nodes:
            self.start_node(name)
        self.wait_until_idle()
        return self

    def stop(self) -> None:
        for machine in (*self.nodes.values(), self.controller):
            machine.stop()
        self._bridge.remove()
        subprocess.run(self._group_removal, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def let_people_read(self, *folders: Path) -> None:
        """Makes folders readable for the accounts on all machines, now and after they boot. The machine of
        the tests keeps its rights."""
        self._readable = list(dict.fromkeys(folders))
        for machine in (self.controller, *self.nodes.values()):
            self._open_folders(machine)

    def start_controller(self) -> None:
        self._spawn(self.controller, "slurmctld", "-D")

    def start_node(self, name: str) -> None:
        (self.folder / "spool" / name).mkdir(parents=True, exist_ok=True)
        self._spawn(self.nodes[name], "slurmd", "-D", "-N", name)

    def steps_on(self, name: str) -> str:
        """The steps that a node's slurmd has, as it says; "" if there is none."""
        command = ("scontrol", "show", "slurmd", name)
        done = self.nodes[name].run(*command, check=False, env=self.environment())
        return next((line for line in done.stdout.splitlines() if line.startswith("Active Steps")), "")

    def reboot_node(self, name: str) -> None:
        self.nodes[name].crash()
        self._boot(self.nodes[name])
        self.start_node(name)

    def reconfigure(self, **options: str) -> None:
        """Change options of slurm.conf everywhere; without any, back to those of the start."""
        configuration.write_configuration(replace(self.layout, options=options))
        self.admin("scontrol", "reconfigure")

    def admin(self, *command: str) -> str:
        """Run a command of Slurm as root on the controller."""
        return self.controller.run(*command, env=self.environment()).stdout

    def refusal(self, *command: str) -> str:
        """What such a command says as it fails."""
        done = self.controller.run(*command, check=False, env=self.environment())
        assert done.returncode, f"{command} did not fail: {done.stdout}"
        return done.stderr

    def kill_node_daemon(self, name: str) -> None:
        pid = self.nodes[name].pid_of("slurmd -D")
        os.kill(pid, signal.SIGKILL)
        # Its successor needs the same port.
        eventually(lambda: not processes.lives(pid), KILLED_S, f"slurmd of {name} has ended")

    def kill_controller(self) -> None:
        os.kill(self.controller.pid_of("slurmctld"), signal.SIGKILL)

    def kill_accounting(self) -> None:
        os.kill(self.controller.pid_of("slurmdbd"), signal.SIGKILL)

    def wait_for_saved_state(self) -> None:
        """Until slurmctld has written down all that is so now, which it does every few seconds."""
        saved, now = self.folder / "state" / "job_state", time.time()
        eventually(lambda: saved.exists() and saved.stat().st_mtime > now, STARTED_S, "the state is saved")

    def client_conf(self, **options: str) -> Path:
        """Another slurm.conf for commands alone, with these options changed."""
        path = self.folder / "etc" / f"{secrets.token_hex(4)}.conf"
        path.write_text(slurm_conf(replace(self.layout, options=options)))
        return path

    def environment(self) -> dict[str, str]:
        return {"SLURM_CONF": str(self.layout.conf)}

    def wait_for_node(self, name: str, state: str) -> None:
        def has_state() -> bool:
            return self.admin("sinfo", "-h", "-n", name, "-o", "%T").split()[:1] == [state]

        eventually(has_state, STARTED_S, f"{name} is {state}")

    def wait_until_idle(self) -> None:
        eventually(self._all_idle, STARTED_S, "all nodes are idle")

    def is_up(self) -> bool:
        return "is UP" in self.controller.run("scontrol", "ping", check=False, env=self.environment()).stdout

    def _all_idle(self) -> bool:
        done = self.controller.run(
            "sinfo", "-h", "-N", "-p", "main", "-o", "%T", check=False, env=self.environment()
        )
        return done.stdout.split() == ["idle"] * len(self.nodes)

    def _boot(self, machine: Machine) -> None:
        machine.boot()
        machine.folder.chmod(0o1777)
        if self.layout.limits_memory:
            machine.run("sh", "-ec", MOUNT_MEMORY, "sh", self.folder.name)
        self._open_folders(machine)

    def _open_folders(self, machine: Machine) -> None:
        inside: dict[Path, list[Path]] = {}
        for folder in self._readable:
            closed = [parent for parent in folder.parents if not parent.stat().st_mode & stat.S_IXOTH]
            if closed:
                inside.setdefault(closed[-1], []).append(folder)
        for cover, folders in inside.items():
            machine.run("sh", "-ec", OPEN_FOLDER, "sh", str(cover), *map(str, folders))

    def _add_people(self, machine: Machine) -> None:
        """`ip netns exec` puts files of /etc/netns over those of /etc, here alone; homes are not shared."""
        for name, lines in ADDED.items():
            path = ETC / self._bridge.namespace(machine.name) / name
            own = lines.replace(":/home/", f":{self.folder}/home/{machine.name}/")
            path.write_text(Path("/etc", name).read_text() + own)
        for account, (number, home) in PEOPLE.items():
            if home != "/":
                own_home = self.folder / "home" / machine.name / account
                own_home.mkdir(parents=True, mode=0o755)
                os.chown(own_home, number, number)
        # Slurm's names of nodes are those of machines, too, as at most sites.
        hosts = ETC / self._bridge.namespace(machine.name) / "hosts"
        names = "".join(f"{node.address} {name}\n" for name, node in self.nodes.items())
        hosts.write_text(hosts.read_text() + names)

    def _spawn(self, machine: Machine, *command: str, **env: str) -> None:
        log = self.folder / "log" / f"{machine.name}-{Path(command[0]).name}.out"
        machine.spawn(log, *command, **self.environment(), **env)

    def _start_munged(self) -> None:
        start_munged(self.controller, self.layout.socket)

    def _start_database(self) -> None:
        socket = self.layout.database
        options = [
            "--no-defaults",
            "--user=root",
            f"--datadir={self.folder / 'mariadb'}",
            # Other databases of this machine may have used up what the kernel allows.
            "--innodb-use-native-aio=OFF",
        ]
        # With the tables of an installation: without them slurmdbd has no procedures, and a controller that
        # restarts then finds nobody's account.
        install = ["mariadb-install-db", *options, "--skip-test-db"]
        subprocess.run(install, check=True, capture_output=True)
        self._spawn(self.controller, "mariadbd", *options, "--skip-networking", f"--socket={socket}")
        eventually(socket.exists, STARTED_S, "the database is up")
        self.start_accounting()
        assert self._sacctmgr("add", "cluster", configuration.CLUSTER)

    def start_accounting(self) -> None:
        self._spawn(self.controller, "slurmdbd", "-D", MYSQL_UNIX_PORT=str(self.layout.database))
        eventually(lambda: self._sacctmgr("show", "cluster"), STARTED_S, "slurmdbd answers")

    def _add_accounts(self) -> None:
        first, *others = ACCOUNTS
        # slurmctld hears of no changes before it listens, and the database of no GPUs before that.
        eventually(self.is_up, STARTED_S, "slurmctld listens")
        eventually(lambda: self._sacctmgr(*first), STARTED_S, "slurmctld has registered its resources")
        for command in others:
            assert self._sacctmgr(*command), command

    def _sacctmgr(self, *command: str) -> bool:
        done = self.controller.run("sacctmgr", "-i", *command, check=False, env=self.environment())
        return done.returncode == 0


# Ada's and Bo's limits: with the QOS `small`, one GPU each.
ACCOUNTS = (
    ("add", "qos", "small", "MaxTRESPerUser=gres/gpu=1"),
    ("add", "account", "team", "Description=team", "Organization=team"),
    ("add", "user", "ada", "account=team", "qos=normal,small", "defaultqos=normal"),
    ("add", "user", "bo", "account=team", "qos=normal", "defaultqos=normal"),
)


def start_munged(machine: Machine, socket: Path) -> None:
    """Start a munged with a key of its own beside its socket."""
    folder = socket.parent
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o600)
    machine.spawn(
        folder / "munged.out", "munged", "-F", f"--socket={socket}", f"--key-file={key}",
        f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log",
        f"--seed-file={folder}/munged.seed",
    )  # fmt: skip
    eventually(socket.exists, STARTED_S, "munged is up")

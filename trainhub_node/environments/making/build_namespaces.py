"""The part of an image build that runs in namespaces: podman and all that it unpacks and runs belong to a
user namespace, in which nobody is an account of the machine.

`run` is process 1 of a namespace of processes, as root, with mounts of its own. It starts a container in
which nothing happens: the engine makes its user namespace, and connects a network to that, in which the RUN
lines will be. Then it starts podman inside that user namespace, but in the network of the node, from where
images are pulled."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from trainhub_node import records
from trainhub_node.containers.engine import HOLDER_PLACE, Engine, EngineError, Mount, error_lines
from trainhub_node.environments.making.base_login import LOGIN_FILE
from trainhub_node.isolation import syscalls
from trainhub_node.isolation.syscalls import CLONE_NEWIPC, CLONE_NEWNS, CLONE_NEWUSER, MS_BIND

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Sequence
    from typing import Any, NoReturn
else:
    import _signal as signal

REQUEST = "request.json"
# The last one of those that systemd leaves to containers; no account has one of these numbers.
FIRST_UID, UIDS = 0x6FFF0000, 0x10000
HOLDER_IMAGE, HOLDER_NAME = "localhost/trainhub-holder:1", "trainhub-holder"
# More than it needs; a user namespace cannot raise what the node allows.
HOLDER_LIMIT = 1024
# What the parts of the build's folders are called, for the build's account and for root.
OWN, HOLDER, RUNTIME = "own", "holder", "runtime"
EMPTY_ARCHIVE = bytes(10240)
TIMEOUT_S = 60.0
CANNOT_RUN = 127
# In a command: the option's value for the network of the RUN lines.
NETWORK = "{network}"
# Files of an operator which podman reads by name, and its folder of such files.
NAMED_FILES = ("CONTAINERS_CONF", "CONTAINERS_REGISTRIES_CONF")
CONFIGURATION = ".config/containers"
# podman looks there for its locks and for signatures, and those of the machine belong to root.
CLOSED_PLACES = ("/dev/shm", "/var/lib/containers")  # noqa: S108 - places for mounts
# Where `podman login` of root leaves its file.
LOGIN_FOLDERS = ("/run/containers/0", "/run/user/0")


def run(folder: str) -> NoReturn:
    """Carries out the request in `folder` and exits with the exit code of its first command that fails. Its
    own errors are lines like podman's."""
    code = CANNOT_RUN
    try:
        # The engine needs to see its own processes end.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGCHLD, signal.SIGUSR1))
        code = _Namespaces(records.read(f"{folder}/{REQUEST}")).run()
    except (OSError, EngineError, ValueError, subprocess.TimeoutExpired) as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.stderr.flush()
    os._exit(code)


class _Namespaces:
    def __init__(self, request: dict[str, Any]) -> None:
        self._engine = Engine.from_terms(request["engine"])
        self._commands: list[tuple[str, list[str]]] = request["commands"]
        self._folder = str(request["folder"])
        self._run_folder = str(request["run_folder"])
        self._own = f"{self._run_folder}/{OWN}"
        self._variables: dict[str, str] = {**self._engine.variables, **request["variables"]}

    def run(self) -> int:
        self._prepare_folders()
        try:
            holder = self._start_holder()
            for title, command in self._commands:
                os.write(1, f"{title}\n".encode())
                network = f"ns:/proc/{holder}/ns/net"
                code = self._call_inside(holder, [word.replace(NETWORK, network) for word in command])
                if code:
                    return code
        finally:
            # It has the network's address for as long as it exists.
            self._call_engine("rm", "--force", "--time=0", HOLDER_NAME)
        return 0

    def _prepare_folders(self) -> None:
        """Gives the build's account what is its own, in a place that it can reach."""
        os.chmod(self._run_folder, 0o711)  # noqa: S103 - to be passed, and not to be listed
        source = f"{self._folder}/{OWN}"
        self._copy_configuration(source)
        for parent, folders, files in os.walk(source):
            for name in (".", *folders, *files):
                os.chown(f"{parent}/{name}", FIRST_UID, FIRST_UID, follow_symlinks=False)
        for name in (OWN, RUNTIME):
            os.mkdir(f"{self._run_folder}/{name}", 0o700)
            os.chown(f"{self._run_folder}/{name}", FIRST_UID, FIRST_UID)
        syscalls.mount(source, self._own, None, MS_BIND)

    def _copy_configuration(self, source: str) -> None:
        """Copies what an operator has written for podman, which may be where only root gets."""
        for name in NAMED_FILES:
            path = self._variables.get(name)
            if path and os.path.exists(path):
                shutil.copyfile(path, f"{source}/{name}")
                self._variables[name] = f"{self._own}/{name}"
        home = self._variables.get("HOME", "/")
        if os.path.isdir(f"{home}/{CONFIGURATION}"):
            # The login belongs in memory.
            ignored = shutil.ignore_patterns("auth.json")
            shutil.copytree(f"{home}/{CONFIGURATION}", f"{source}/home/{CONFIGURATION}", ignore=ignored)
        self._bring_login(home)
        # Stores are named by options.
        self._variables.pop("CONTAINERS_STORAGE_CONF", None)
        self._variables |= {"HOME": f"{self._own}/home", "XDG_RUNTIME_DIR": f"{self._run_folder}/{RUNTIME}"}

    def _bring_login(self, home: str) -> None:
        """Lets the build's account read the login of the order, or else that of the agent's account."""
        login = f"{self._run_folder}/{LOGIN_FILE}"
        places = [
            self._variables.get("REGISTRY_AUTH_FILE", ""),
            *(f"{folder}/containers/auth.json" for folder in LOGIN_FOLDERS),
            *(f"{home}/{name}" for name in (f"{CONFIGURATION}/auth.json", ".docker/config.json")),
        ]
        agents = next((path for path in places if path and os.path.exists(path)), "")
        if agents and not os.path.exists(login):
            shutil.copyfile(agents, login)
        if os.path.exists(login):
            os.chmod(login, 0o600)
            os.chown(login, FIRST_UID, FIRST_UID)
            self._variables["REGISTRY_AUTH_FILE"] = login

    def _start_holder(self) -> int:
        """Returns the process id of the container in whose user namespace podman will be."""
        self._holder("import", "-", HOLDER_IMAGE, stdin=EMPTY_ARCHIVE)
        pid_file = f"{self._folder}/{HOLDER}/pid"
        program = Mount(self._engine.holder, HOLDER_PLACE, is_read_only=True)
        limits = [f"--ulimit={name}={HOLDER_LIMIT}:{HOLDER_LIMIT}" for name in ("nofile", "nproc")]
        maps = [f"--{kind}=0:{FIRST_UID}:{UIDS}" for kind in ("uidmap", "gidmap")]
        self._holder(
            *("run", "--detach", "--pull=never", f"--name={HOLDER_NAME}", *maps, *limits),
            *("--network=bridge", "--cap-drop=all", "--security-opt=no-new-privileges", "--no-healthcheck"),
            *("--log-driver=none", "--systemd=false", "--workdir=/", f"--pidfile={pid_file}"),
            *(f"--mount={program.argument()}", f'--entrypoint=["{HOLDER_PLACE}","-P"]', HOLDER_IMAGE),
        )
        with open(pid_file, encoding="ascii") as file:
            return int(file.read())

    def _holder(self, *arguments: str, stdin: bytes = b"") -> None:
        """Calls podman for the container that holds the namespaces. Raises EngineError."""
        done = self._call_engine(*arguments, stdin=stdin)
        if done.returncode:
            lines = error_lines(done.stderr.decode(errors="replace")) or [f"code {done.returncode}"]
            raise EngineError(f"podman cannot start a container: {lines[-1].removeprefix('Error: ')}")

    def _call_engine(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        store = (f"--root={self._folder}/{HOLDER}", f"--runroot={self._run_folder}/{HOLDER}")
        return subprocess.run(
            [self._engine.program, *store, "--storage-driver=overlay", *arguments],
            input=stdin,
            env=self._engine.start_variables,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    def _call_inside(self, holder: int, command: Sequence[str]) -> int:
        """Runs the command in the user namespace of the container. Returns its exit code."""
        pid = os.fork()
        if pid == 0:
            try:
                self._enter(holder)
                os.execve(command[0], list(command), self._variables)
            except OSError as error:
                os.write(2, f"Error: {error}\n".encode())
            finally:
                os._exit(CANNOT_RUN)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def _enter(self, holder: int) -> None:
        descriptor = os.open(f"/proc/{holder}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
        syscalls.setns(descriptor, CLONE_NEWUSER)
        syscalls.unshare(CLONE_NEWNS | CLONE_NEWIPC)
        os.setgroups([])
        os.setresgid(0, 0, 0)
        os.setresuid(0, 0, 0)
        for place in filter(os.path.isdir, CLOSED_PLACES):
            syscalls.mount("tmpfs", place, "tmpfs", 0)
        os.chdir(self._own)

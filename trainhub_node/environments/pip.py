"""Makes a virtual environment with `venv` and pip; their output goes live to the environment's build log.

Packages are first downloaded, only as wheels, which runs none of their code. They are then installed
without an index, and without the variables that lead to one (`PIP_*` and proxies, which may hold
passwords). Only if something has no wheel does pip build it, and the code that this runs sees pip's
variables. A locked environment is never built from source: each file must have a hash of the lock."""

from __future__ import annotations

import os
import sys

from trainhub_launch.log_names import ENVIRONMENT_LOG
from trainhub_node.environments import builder_account
from trainhub_node.environments.progress_report import ProgressReport
from trainhub_node.supervisor import gang as gangs
from trainhub_node.supervisor import rank, variables
from trainhub_node.supervisor.gang import Gang, PreparationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping
    from typing import Any, NoReturn

    from trainhub_node.environments.progress_report import BuildProgress
    from trainhub_node.isolation.namespaces import Namespaces
else:
    import _signal as signal  # `signal` itself builds enums for 5 ms

LOG = ENVIRONMENT_LOG
TAIL_BYTES = 16384
STOP_CHECK_S = 0.25
TERM_GRACE_S = 3.0
BUILDER = "trainhub-build"
PIP_OPTIONS = ("--no-input", "--progress-bar", "off", "--disable-pip-version-check")
WHEEL = ".whl"
LOCK = "requirements.lock"
MISMATCH = "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES"
# Requirements whose sources pip builds without an error, but into something that cannot train.
ONLY_WHEELS = {
    "horovod==0.28.1": (
        "horovod 0.28.1 has no wheel for this environment on an index, and pip would build it without "
        "PyTorch and TensorFlow. Build its wheel, and start this node's agent with PIP_FIND_LINKS set to its "
        "folder (docs/frameworks.md)"
    ),
}


class EnvironmentBuild:
    """Builds one virtual environment in `folder`.

    `scratch`: a folder of the builder's for everything else. `builder`: the user id that builds, None for the
    agent's own account. `namespaces`: those of the build, if it has its own."""

    def __init__(
        self,
        gang: Gang,
        folder: str,
        scratch: str,
        *,
        builder: int | None,
        namespaces: Namespaces | None = None,
    ) -> None:
        self.gang = gang
        self.folder = folder
        self.scratch = scratch
        self._namespaces = namespaces
        self._builder = builder

    @property
    def owner(self) -> int:
        """The user id that builds."""
        return os.geteuid() if self._builder is None else self._builder

    def run(self, spec: Mapping[str, Any], python: str) -> None:
        """Makes the environment. Raises PreparationFailed with pip's last error, or StopRequested."""
        lock = spec.get("lock", "")
        if lock:
            self.write_scratch(LOCK, lock.encode())
        self._make_venv(python)
        if lock:
            self.install_lock(spec)
            return
        requirements = list(spec["requirements"])
        if not requirements:
            return
        index = _index_variables(self.gang.terms["pip"], spec["index_urls"])
        wheels = f"{self.scratch}/wheels"
        download = [
            *self._pip(),
            "download",
            *PIP_OPTIONS,
            "--only-binary",
            ":all:",
            "--dest",
            wheels,
            "--",
            *requirements,
        ]
        pins = _pins(wheels) if self.call(download, index) == 0 else None
        if pins:
            install = [
                *self._pip(),
                "install",
                *PIP_OPTIONS,
                "--no-index",
                "--no-deps",
                "--find-links",
                wheels,
                "--",
                *pins,
            ]
            code = self.call(install, {})
        else:
            for requirement in requirements:
                if requirement in ONLY_WHEELS:
                    raise PreparationFailed("environment", f"{ONLY_WHEELS[requirement]}.")
            self.write("Not every package has a wheel; the others are built here.")
            code = self.call([*self._pip(), "install", *PIP_OPTIONS, "--", *requirements], index)
        if code != 0:
            raise PreparationFailed(
                "environment", f"pip could not install {', '.join(requirements)}: {_last_error(self.gang)}"
            )

    def finish(self, folder: str) -> None:
        """Writes what the finished environment in `folder` needs besides its packages."""

    def write_scratch(self, name: str, content: bytes) -> None:
        """Writes a file for the builder. Before any process of it runs, which could put a link in the place
        of the file."""
        file = os.open(f"{self.scratch}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            data = memoryview(content)
            while data:
                data = data[os.write(file, data) :]
            os.fchmod(file, 0o644)
        finally:
            os.close(file)

    def install_lock(self, spec: Mapping[str, Any]) -> None:
        """Installs what the lock names, its indexes included. Nothing is resolved: the lock is complete."""
        locked = ["--require-hashes", "--no-deps", "--only-binary", ":all:"]
        wheels, lock = f"{self.scratch}/wheels", f"{self.scratch}/{LOCK}"
        download = [*self._pip(), "download", *PIP_OPTIONS, *locked, "--dest", wheels, "--requirement", lock]
        offline = ["--no-index", "--find-links", wheels]
        install = [*self._pip(), "install", *PIP_OPTIONS, *locked, *offline, "--requirement", lock]
        code = self.call(download, self.gang.terms["pip"])
        if code == 0:
            code = self.call(install, {})
        if code != 0:
            reason = hash_mismatch(_tail(self.gang)) or _last_error(self.gang)
            raise PreparationFailed(
                "environment", f"The locked packages of {spec['name']} could not be installed: {reason}"
            )

    def write(self, sentence: str) -> None:
        """Writes a line of the agent to the build log."""
        gangs.append_to_file(self.gang.folder.log(LOG), f"{sentence}\n".encode(errors="backslashreplace"))

    def _make_venv(self, python: str) -> None:
        if self.call([python, "-m", "venv", self.folder], {}) == 0:
            return
        # Debian's Python comes without ensurepip; then this agent's own pip installs into the environment.
        if self.call([python, "-m", "venv", "--clear", "--without-pip", self.folder], {}) != 0:
            raise PreparationFailed(
                "environment", f"{python} could not make a virtual environment: {_last_error(self.gang)}"
            )

    def _pip(self) -> list[str]:
        if os.path.lexists(f"{self.folder}/bin/pip"):
            return [f"{self.folder}/bin/python", "-m", "pip"]
        return [sys.executable, "-m", "pip", "--python", f"{self.folder}/bin/python"]

    def call(self, argv: list[str], extra: Mapping[str, str], progress: BuildProgress | None = None) -> int:
        """Runs `argv` to its end, its output in the build log, from which `progress` is read. Returns the
        exit code.

        Raises StopRequested after ending its whole process group."""
        self.write(f"+ {' '.join(map(_without_password, argv))}")
        log = os.open(self.gang.folder.log(LOG), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
        report = ProgressReport(self.gang, self.folder, progress)
        pid = os.fork() if self._namespaces is None else self._namespaces.fork()
        if pid == 0:
            self._exec(argv, {**self._environment(), **extra}, log)
        os.close(log)
        try:
            return _wait(self.gang, pid, report)
        except BaseException:
            _terminate(pid)
            raise

    def _environment(self) -> dict[str, str]:
        env = {**variables.base_environment(None), "PYTHONUNBUFFERED": "1"}
        if self._builder is not None:
            # No cache and no temporary files are shared with other builds or with runs.
            env |= {"HOME": self.scratch, "TMPDIR": self.scratch, "USER": BUILDER}
        if self._namespaces is not None:
            # It has its own /tmp, and may not write into the account's cache, which every later build reads.
            env.pop("TMPDIR", None)
            env["PIP_CACHE_DIR"] = f"{self.scratch}/cache"
        return env

    def _exec(self, argv: list[str], env: dict[str, str], log: int) -> NoReturn:
        try:
            # A group of its own, so that a stop request ends pip together with the compilers that it started.
            os.setpgid(0, 0)
            rank.redirect_output(log)
            if self._namespaces is not None:
                self._namespaces.enter()
            if self._builder is not None:
                builder_account.switch_to_builder(self._builder)
            os.umask(0o022)
            os.chdir("/")
            rank.reset_signals()
            os.execve(argv[0], argv, env)
        except OSError as error:
            os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
        finally:
            os._exit(rank.CANNOT_RUN)


def _index_variables(agent_variables: Mapping[str, str], index_urls: list[str]) -> dict[str, str]:
    """Returns the variables that name pip's indexes. Not arguments: every account of the machine can see
    those."""
    variables = dict(agent_variables)
    if index_urls:
        variables["PIP_INDEX_URL"] = index_urls[0]
        extra = [*agent_variables.get("PIP_EXTRA_INDEX_URL", "").split(), *index_urls[1:]]
        if extra:
            variables["PIP_EXTRA_INDEX_URL"] = " ".join(extra)
    return variables


def _pins(folder: str) -> list[str] | None:
    """Returns a requirement for each wheel in `folder`, whose name begins with package and version.

    Returns None if there are other files: despite `--only-binary`, pip downloads sources of requirements
    that are URLs."""
    names = sorted(os.listdir(folder))
    if not all(name.endswith(WHEEL) for name in names):
        return None
    return ["==".join(name.split("-")[:2]) for name in names]


def _without_password(item: str) -> str:
    """Returns the argument without a password: every viewer of the run sees the build log."""
    scheme, separator, rest = item.partition("://")
    user, at, host = rest.partition("/")[0].rpartition("@")
    return f"{scheme}://****@{rest[len(user) + 1 :]}" if separator and at and host else item


def _wait(gang: Gang, pid: int, progress: ProgressReport) -> int:
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        gang.check_stop()
        progress.write()
        # The child blocks these signals, so that none is lost between the checks above and this wait.
        signal.sigtimedwait((signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM), STOP_CHECK_S)


def _terminate(pid: int) -> None:
    """Ends pip and all that it started: SIGTERM, and SIGKILL when pip has ended or its grace is over."""
    rank.signal_group(pid, signal.SIGTERM)
    signal.sigtimedwait((signal.SIGCHLD,), TERM_GRACE_S)
    # Also where pip itself has ended: a compiler may have ignored SIGTERM. Before `waitpid`, because until
    # then no other group can get this id.
    rank.signal_group(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _last_error(gang: Gang) -> str:
    """Returns the last line that pip marks as an error, else the last line."""
    lines = _tail(gang)
    errors = [line for line in lines if line.startswith(("ERROR:", "error:", "Error:"))]
    return (errors or lines or ["it wrote no message"])[-1]


def hash_mismatch(lines: list[str]) -> str:
    """Returns which package of pip's output does not match its hash, as a sentence, or ""."""
    at = next((number for number, line in enumerate(lines) if line.startswith(MISMATCH)), None)
    if at is None:
        return ""
    # pip writes the package in the line after its own advice.
    package = next((line.split()[0] for line in lines[at + 1 :] if " from " in line), "a package")
    return (
        f"the file of {package} on the index is not the one that was locked: its hash differs. Make a new "
        "version of the environment if the file was replaced on purpose."
    )


def _tail(gang: Gang) -> list[str]:
    """Returns the last lines of the build log, without empty ones."""
    with open(gang.folder.log(LOG), "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
        text = file.read().decode(errors="replace")
    return [line.strip() for line in text.splitlines() if line.strip()]

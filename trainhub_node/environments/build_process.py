"""The processes that build an environment: their output goes live to the environment's build log."""

from __future__ import annotations

import os

from trainhub_launch.log_names import ENVIRONMENT_LOG
from trainhub_node.environments import builder_account, process_wait
from trainhub_node.environments.progress_report import ProgressReport
from trainhub_node.supervisor import gang as gangs
from trainhub_node.supervisor import rank, variables
from trainhub_node.supervisor.gang import Gang

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import NoReturn

    from trainhub_node.environments.code_limits import CodeLimits
    from trainhub_node.environments.progress_report import BuildProgress
    from trainhub_node.isolation.namespaces import Namespaces
else:
    pass  # `signal` itself builds enums for 5 ms

LOG = ENVIRONMENT_LOG
BUILDER = "trainhub-build"
NO_SPACE = "No space left on device"
FULL_DISK = (
    "the disk of this node is full: free space in the folder of its cache (TRAINHUB_NODE_CACHE), and start "
    "it again"
)


class BuildProcess:
    """Runs the programs of one build of the environment in `folder`.

    `scratch`: a folder of the builder's for everything else. `builder`: the user id that builds, None for the
    agent's own account. `namespaces`: those of the build, if it has its own. `limits`: what programs that run
    code of packages may not."""

    def __init__(
        self,
        gang: Gang,
        folder: str,
        scratch: str,
        *,
        builder: int | None,
        namespaces: Namespaces | None = None,
        limits: CodeLimits | None = None,
    ) -> None:
        self._gang = gang
        self._folder = folder
        self._scratch = scratch
        self._builder = builder
        self._namespaces = namespaces
        self._limits = limits

    def write(self, sentence: str) -> None:
        """Writes a line of the agent to the build log."""
        gangs.append_to_file(self._gang.folder.log(LOG), f"{sentence}\n".encode(errors="backslashreplace"))

    def write_file(self, name: str, text: str) -> str:
        """Writes a file of the scratch folder that the builder can read, and returns its path. To be called
        before any process of the builder runs, which could put a link in the place of the file."""
        path = f"{self._scratch}/{name}"
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            data = memoryview(text.encode())
            while data:
                data = data[os.write(file, data) :]
            os.fchmod(file, 0o644)
        finally:
            os.close(file)
        return path

    def call(self, argv: list[str], extra: Mapping[str, str], progress: BuildProgress | None = None) -> int:
        """Runs `argv` to its end, its output in the build log. Returns the exit code. `progress`: reads how
        far it is from its output; that of pip unless it is given.

        Raises StopRequested after ending its whole process group."""
        self.write(f"+ {' '.join(map(_without_password, argv))}")
        log = os.open(self._gang.folder.log(LOG), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
        report = ProgressReport(self._gang, self._folder, progress)
        pid = os.fork() if self._namespaces is None else self._namespaces.fork()
        if pid == 0:
            self._exec(argv, {**self._environment(), **extra}, log)
        os.close(log)
        try:
            return process_wait.wait_for_exit(self._gang, pid, self._on_poll(report))
        except BaseException:
            process_wait.end_group(pid)
            raise

    def _on_poll(self, report: ProgressReport) -> Callable[[], None]:
        limits = self._limits
        if limits is None:
            return report.write

        def poll() -> None:
            limits.check()
            report.write()

        return poll

    def tail(self) -> list[str]:
        """Returns the last lines of the build log, without empty ones."""
        return process_wait.log_tail(self._gang)

    def last_error(self) -> str:
        """Returns the last line that is marked as an error, else the last line."""
        lines = self.tail()
        errors = [line for line in lines if line.startswith(("ERROR:", "error:", "Error:"))]
        line = (errors or lines or ["it wrote no message"])[-1]
        return f"{FULL_DISK} ({line})" if NO_SPACE in line else line

    def _environment(self) -> dict[str, str]:
        env = {**variables.base_environment(None), "PYTHONUNBUFFERED": "1"}
        if self._builder is not None:
            # No cache and no temporary files are shared with other builds or with runs.
            env |= {"HOME": self._scratch, "TMPDIR": self._scratch, "USER": BUILDER}
        if self._namespaces is not None:
            # It has its own /tmp, and may not write into the account's cache, which every later build reads.
            env.pop("TMPDIR", None)
            env["PIP_CACHE_DIR"] = f"{self._scratch}/cache"
        return env

    def _exec(self, argv: list[str], env: dict[str, str], log: int) -> NoReturn:
        try:
            # A group of its own, so that a stop request ends the program together with what it started.
            os.setpgid(0, 0)
            rank.redirect_output(log)
            if self._namespaces is not None:
                self._namespaces.enter()
            program: int | str = argv[0]
            if program == self._gang.terms.get("uv"):
                # Opened before the account changes, which may not enter the folder in which the agent has uv.
                # No other program: a Python that cannot read its own library takes that of another one.
                program = os.open(argv[0], os.O_RDONLY | os.O_CLOEXEC)
            if self._limits is not None:
                self._limits.enter()
            if self._builder is not None:
                builder_account.switch_to_builder(self._builder)
            if self._namespaces is None:
                # If the child is killed, so is this: nothing may write into what another run builds anew.
                builder_account.end_with_parent()
            os.umask(0o022)
            os.chdir("/")
            rank.reset_signals()
            os.execve(program, argv, env)
        except OSError as error:
            os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
        finally:
            os._exit(rank.CANNOT_RUN)


def _without_password(item: str) -> str:
    """Returns the argument without a password: every viewer of the run sees the build log."""
    scheme, separator, rest = item.partition("://")
    user, at, host = rest.partition("/")[0].rpartition("@")
    return f"{scheme}://****@{rest[len(user) + 1 :]}" if separator and at and host else item

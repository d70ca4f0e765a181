"""The one place that knows the name of every file of an attempt on its node."""

from __future__ import annotations

DAEMON_CALL = "daemon-"
RUN_ID_LENGTH = 32
RUN_ID_CHARACTERS = "0123456789abcdef"
MAX_ATTEMPT = 2**31 - 1


class InvalidIdentifier(ValueError):
    """A value that cannot name a run, an attempt or one of its files, and must not become part of a path."""


def is_key(run: object, attempt: object) -> bool:
    """Returns whether `run` is a run id (32 lowercase hexadecimal digits) and `attempt` an integer of at
    least 1."""
    # Without `re`, whose import would delay every rank by 8 ms.
    is_run = type(run) is str and len(run) == RUN_ID_LENGTH and not run.strip(RUN_ID_CHARACTERS)
    return is_run and type(attempt) is int and 1 <= attempt <= MAX_ATTEMPT


class RunDir:
    """One attempt's folder. Raises InvalidIdentifier for an invalid `run` or `attempt`.

    Writers: the agent writes `claim`, `order`, `go`, `daemon`, `terms`, `agent`, `stop`, `checkpoints`,
    `restored`, `outputs_record` and `settled`; the child writes `child`, `state`, `bin`, `supervisor_ended`
    and, for the ranks to read, `notices` and `references`; rank wrappers and `rsh` write into `ranks`. Under
    MPI `ranks` belongs to the account of the ranks, so the child writes nothing into it once they run."""

    __slots__ = ("attempt", "path", "run")

    def __init__(self, attempts: str, run: str, attempt: int) -> None:
        if not is_key(run, attempt):
            raise InvalidIdentifier(f"{run!r:.100} and {attempt!r:.100} do not name an attempt of a run")
        self.run = run
        self.attempt = attempt
        self.path = f"{attempts}/{run}-{attempt}"

    @classmethod
    def at(cls, path: str) -> RunDir:
        """Returns the attempt whose folder is `path`. Raises InvalidIdentifier for any other folder."""
        attempts, _, name = path.rpartition("/")
        run, _, attempt = name.rpartition("-")
        # `isdigit` alone accepts digits of other scripts, and `int` leading zeros: each attempt has one name.
        is_number = attempt.isascii() and attempt.isdigit() and not attempt.startswith("0")
        if not is_number or len(attempt) > len(str(MAX_ATTEMPT)):
            raise InvalidIdentifier(f"{path} is not the folder of an attempt")
        return cls(attempts, run, int(attempt))

    @property
    def key(self) -> tuple[str, int]:
        return self.run, self.attempt

    @property
    def claim(self) -> str:
        return f"{self.path}/claim.json"

    @property
    def order(self) -> str:
        return f"{self.path}/order.json"

    @property
    def go(self) -> str:
        """The final order of a run on several nodes; the processes may start once this file exists."""
        return f"{self.path}/go.json"

    @property
    def daemon(self) -> str:
        """The arguments with which mpirun, on the run's head node, requests its daemon on this node."""
        return f"{self.path}/daemon.json"

    @property
    def bin(self) -> str:
        """The folder of our programs that mpirun and its daemons find by name, because paths may differ from
        node to node."""
        return f"{self.path}/bin"

    @property
    def terms(self) -> str:
        return f"{self.path}/terms.json"

    @property
    def agent(self) -> str:
        return f"{self.path}/agent.json"

    @property
    def stop(self) -> str:
        return f"{self.path}/stop.json"

    @property
    def notices(self) -> str:
        """The folder of files that tell the ranks something."""
        return f"{self.path}/notices"

    @property
    def stop_notice(self) -> str:
        """The file that announces any stop to the ranks; its path is in their environment."""
        return f"{self.notices}/stop.json"

    @property
    def preemption(self) -> str:
        """The file that announces a preemption to the ranks; its path is in their environment."""
        return f"{self.notices}/preemption.json"

    @property
    def checkpoints(self) -> str:
        """Which checkpoints the hub has taken, or has given."""
        return f"{self.path}/checkpoints.json"

    @property
    def restored(self) -> str:
        """The folder of downloaded files of the checkpoint from which the attempt goes on."""
        return f"{self.path}/restored"

    def manifest(self, sha256: str) -> str:
        """The list of the files of a dataset's version that the attempt reads."""
        return f"{self.path}/manifests/{sha256}"

    @property
    def references(self) -> str:
        """The folder of the addresses of data that the run reads from its store itself."""
        return f"{self.path}/references"

    @property
    def data_changes(self) -> str:
        """The folder of what the run writes beside the data that was downloaded for it."""
        return f"{self.path}/data_changes"

    @property
    def outputs_record(self) -> str:
        return f"{self.path}/outputs.json"

    @property
    def settled(self) -> str:
        return f"{self.path}/settled.json"

    @property
    def container_pid(self) -> str:
        """The process id of the process that keeps the attempt's container alive."""
        return f"{self.path}/container.pid"

    @property
    def child_lock(self) -> str:
        return f"{self.path}/child.lock"

    @property
    def child(self) -> str:
        return f"{self.path}/child.json"

    @property
    def child_log(self) -> str:
        """The standard output and error of the child, empty unless it failed."""
        return f"{self.path}/child.log"

    @property
    def state(self) -> str:
        return f"{self.path}/state.json"

    @property
    def ranks(self) -> str:
        return f"{self.path}/ranks"

    @property
    def starts(self) -> str:
        """The start parameters of each rank, for wrappers that mpirun starts."""
        return f"{self.path}/ranks/starts.json"

    def daemon_call(self, host: str) -> str:
        return f"{self.path}/ranks/{DAEMON_CALL}{host}.json"

    def started(self, rank: int) -> str:
        return f"{self.path}/ranks/{rank}.started.json"

    def ended(self, rank: int) -> str:
        return f"{self.path}/ranks/{rank}.ended.json"

    def supervisor_ended(self, rank: int) -> str:
        """The end of a rank as the child recorded it. Where this file exists it has priority over the
        wrapper's record."""
        return f"{self.path}/{rank}.ended.json"

    @property
    def logs(self) -> str:
        return f"{self.path}/logs"

    def log(self, name: str) -> str:
        """Returns the path of the log `name`. Raises InvalidIdentifier for a name that would leave the
        folder of logs."""
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            raise InvalidIdentifier(f"{name!r:.100} is not the name of a log")
        return f"{self.path}/logs/{name}"

    @property
    def work(self) -> str:
        return f"{self.path}/work"

    @property
    def home(self) -> str:
        """The home of an account that is this attempt's own."""
        return f"{self.path}/home"

    @property
    def temporary(self) -> str:
        """What the run has as /tmp, where it has one of its own."""
        return f"{self.path}/tmp"  # noqa: S108

    @property
    def account_files(self) -> str:
        """The folder of the files that stand in the place of /etc/passwd and /etc/group for the run."""
        return f"{self.path}/etc"

    def supervisor_started(self, rank: int) -> str:
        """The start of a rank with process ids as they are outside of the run's namespace. Where this file
        exists it has priority over the wrapper's record."""
        return f"{self.path}/{rank}.started.json"

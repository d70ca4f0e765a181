"""The software that all nodes of a run must agree on, found without importing any of it."""

from __future__ import annotations

import os
import select
import time

from trainhub_node.supervisor import rank, variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable, Mapping
    from typing import Any, NoReturn

    from trainhub_node.supervisor.gang import Gang
else:
    import _signal as signal  # `signal` itself builds enums for 5 ms

ASK = "import sys; print('.'.join(map(str, sys.version_info[:3])), *sys.path, sep='\\n')"
PACKAGES = {
    name: name
    for name in (
        "torch",
        "tensorflow",
        "horovod",
        "deepspeed",
        "lightning",
        "transformers",
        "mpi4py",
        "numpy",
    )
} | {"tensorflow-cpu": "tensorflow"}
RECORDS = (".dist-info", ".egg-info")
OPEN_MPI = "(Open MPI) "
ANSWER_S = 5.0
LONGEST_ANSWER = 65536


def of(gang: Gang, launcher_env: Mapping[str, str] | None) -> dict[str, str]:
    """Name -> version of what is there; `openmpi` only with the environment of mpirun."""
    account = gang.terms["account"]
    python = _Question([gang.python, "-c", ASK], variables.of_process(gang, {}, gang.python), account)
    mpirun = variables.find("mpirun", launcher_env["PATH"]) if launcher_env is not None else None
    mpi = _Question([mpirun, "--version"], launcher_env or {}, account) if mpirun else None
    until = time.monotonic() + ANSWER_S
    version, *path = python.answer(until).splitlines() or [""]
    found = {"python": version, **installed(path), "openmpi": _open_mpi(mpi.answer(until)) if mpi else ""}
    return {name: value for name, value in found.items() if value}


def installed(path: Iterable[str]) -> dict[str, str]:
    """The packages of interest in the folders of `path`, the first of a name as Python would take it."""
    found: dict[str, str] = {}
    for folder in path:
        try:
            names = os.listdir(folder)
        except OSError:
            continue  # a zip file, or a folder that does not exist
        for name in names:
            stem, suffix = os.path.splitext(name)
            if suffix in RECORDS and "-" in stem:
                package, version = stem.split("-")[:2]
                key = PACKAGES.get(package.lower().replace("_", "-"))
                if key is not None:
                    found.setdefault(key, version)
    return found


def _open_mpi(said: str) -> str:
    """Of `mpirun (Open MPI) 4.1.4`."""
    return (said.partition(OPEN_MPI)[2].split() or [""])[0]


class _Question:
    """A program that is asked for a few lines, as the account of the ranks: what it is may be that account's
    doing."""

    def __init__(self, argv: list[str], env: Mapping[str, str], account: Mapping[str, Any] | None) -> None:
        self._said, into = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _become(argv, env, account, into)
        os.close(into)

    def answer(self, until: float) -> str:
        """What it said by then."""
        said = b""
        while (
            len(said) < LONGEST_ANSWER
            and select.select([self._said], [], [], max(0.0, until - time.monotonic()))[0]
        ):
            piece = os.read(self._said, LONGEST_ANSWER)
            if not piece:
                break
            said += piece
        os.close(self._said)
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        return said.decode(errors="replace")


def _become(
    argv: list[str], env: Mapping[str, str], account: Mapping[str, Any] | None, into: int
) -> NoReturn:
    try:
        rank.attach(os.open("/dev/null", os.O_WRONLY))
        os.dup2(into, 1)
        rank.drop_to(account)
        os.chdir("/")
        rank.reset_signals()
        os.execve(argv[0], argv, dict(env))
    finally:
        os._exit(rank.CANNOT_RUN)

"""The versions of the software on which all nodes of a run must agree, found without importing it."""

from __future__ import annotations

import os
import select
import time

from trainhub_node.supervisor import in_container, rank, variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable, Mapping
    from typing import NoReturn

    from trainhub_node.supervisor.gang import Gang
else:
    import _signal as signal  # `signal` itself builds enums for 5 ms

VERSION_AND_PATH = "import sys; print('.'.join(map(str, sys.version_info[:3])), *sys.path, sep='\\n')"
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
    # The CPU build of TensorFlow has a name of its own.
} | {"tensorflow-cpu": "tensorflow"}
METADATA_SUFFIXES = (".dist-info", ".egg-info")
OPEN_MPI = "(Open MPI) "
TIMEOUT_S = 5.0
MAX_OUTPUT_BYTES = 65536


def software_versions(gang: Gang, launcher_env: Mapping[str, str] | None) -> dict[str, str]:
    """Returns name -> version of what is installed; `openmpi` only with the environment of mpirun."""
    inside = gang.namespaces if gang.uses_image else None
    environment = variables.process_environment(gang, {}, gang.python)
    python = _Command(gang, [gang.python, "-c", VERSION_AND_PATH], environment) if gang.python else None
    mpirun = in_container.find_program(gang, launcher_env["PATH"], "mpirun") if launcher_env else None
    mpi = _Command(gang, [mpirun, "--version"], launcher_env or {}) if mpirun else None
    deadline = time.monotonic() + TIMEOUT_S
    version, *path = (python.output(deadline).splitlines() if python else []) or [""]
    packages = in_container.run_inside(inside, lambda: _lines(package_versions(path)))
    versions = {
        "python": version,
        **dict(line.split("=", 1) for line in packages.splitlines()),
        "openmpi": _open_mpi_version(mpi.output(deadline)) if mpi else "",
    }
    return {name: value for name, value in versions.items() if value}


def package_versions(path: Iterable[str]) -> dict[str, str]:
    """Returns the packages of interest in the folders of `path`; the first of a name counts, as for
    Python."""
    versions: dict[str, str] = {}
    for folder in path:
        try:
            names = os.listdir(folder)
        except OSError:
            continue  # a zip file, or a folder that does not exist
        for name in names:
            stem, suffix = os.path.splitext(name)
            if suffix in METADATA_SUFFIXES and "-" in stem:
                package, version = stem.split("-")[:2]
                key = PACKAGES.get(package.lower().replace("_", "-"))
                if key is not None:
                    versions.setdefault(key, version)
    return versions


def _lines(values: Mapping[str, str]) -> str:
    return "\n".join(f"{name}={value}" for name, value in values.items() if "\n" not in value)


def _open_mpi_version(output: str) -> str:
    """Returns "4.1.4" for `mpirun (Open MPI) 4.1.4`."""
    return (output.partition(OPEN_MPI)[2].split() or [""])[0]


class _Command:
    """A program that prints a few lines. It runs as the ranks do: an environment may contain code that every
    start of its Python executes."""

    # Started at once for both programs, so that they run at the same time and share one deadline.
    def __init__(self, gang: Gang, argv: list[str], env: Mapping[str, str]) -> None:
        self._read_end, write_end = os.pipe2(os.O_CLOEXEC)
        self._pid = os.fork() if gang.namespaces is None else gang.namespaces.fork()
        if self._pid == 0:
            _exec_command(gang, argv, env, write_end)
        os.close(write_end)

    def output(self, deadline: float) -> str:
        """Returns what the program has printed by the deadline; it is killed then."""
        data = b""
        while (
            len(data) < MAX_OUTPUT_BYTES
            and select.select([self._read_end], [], [], max(0.0, deadline - time.monotonic()))[0]
        ):
            piece = os.read(self._read_end, MAX_OUTPUT_BYTES)
            if not piece:
                break
            data += piece
        os.close(self._read_end)
        # It may have ended by itself; as long as it is not waited for, its number cannot belong to another
        # process.
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        return data.decode(errors="replace")


def _exec_command(gang: Gang, argv: list[str], env: Mapping[str, str], write_end: int) -> NoReturn:
    try:
        rank.redirect_output(os.open("/dev/null", os.O_WRONLY))
        os.dup2(write_end, 1)
        if gang.namespaces is not None:
            gang.namespaces.enter()
        rank.switch_account(gang.terms["account"])
        os.chdir("/")
        rank.reset_signals()
        os.execve(argv[0], argv, dict(env))
    finally:
        os._exit(rank.CANNOT_RUN)

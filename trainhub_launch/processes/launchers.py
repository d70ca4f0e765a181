"""Recognising the user's own launcher in a command, and what it was told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from trainhub_launch.spec import RunSpec

PER_NODE = {
    "torchrun": "torchrun",
    "torch.distributed.run": "torch.distributed.run",
    "torch.distributed.launch": "torch.distributed.launch",
    "accelerate": "accelerate launch",
    "accelerate-launch": "accelerate launch",
    "accelerate.commands.launch": "accelerate launch",
    "fabric": "lightning's fabric run",
    "lightning": "lightning run",
}
"""Program or module -> what to call it; each starts the processes of one node."""

HEAD = frozenset(
    {
        "mpirun",
        "mpirun.openmpi",
        "mpirun.mpich",
        "mpiexec",
        "mpiexec.openmpi",
        "mpiexec.mpich",
        "mpiexec.hydra",
        "orterun",
        "prterun",
        "prun",
        "oshrun",
        "horovodrun",
        "deepspeed",
        "deepspeed.pt",
        "srun",
        "jsrun",
        "aprun",
        "horovod.runner.launch",
        "deepspeed.launcher.runner",
        "deepspeed.launcher.launch",
    }
)
"""Programs and modules that start processes on all nodes from one of them: TrainHub's own work."""

_WITHOUT_VALUE = frozenset(
    {
        "--use-env",
        "--standalone",
        "--no-python",
        "--module",
        "-m",
        "--run-path",
        "--cpu",
        "--multi-gpu",
        "--logs-specs",
    }
)


@dataclass(frozen=True)
class Launcher:
    """`program` as in PER_NODE or HEAD; `options` spelled with dashes; `script` is what it starts, or ""."""

    program: str
    options: dict[str, str]
    script: str

    def option(self, *names: str) -> str | None:
        return next((self.options[name] for name in names if name in self.options), None)


def launcher(command: tuple[str, ...]) -> Launcher | None:
    """The per-node or head launcher that `command` starts with, if it is one we know."""
    program, rest = _program(command)
    if program not in PER_NODE and program not in HEAD:
        return None
    if program == "accelerate":
        if rest[:1] != ("launch",):
            return None
        rest = rest[1:]
    options, script = _options(rest)
    return Launcher(program, options, script)


def processes_started(spec: RunSpec) -> int:
    """How many processes the user's launcher makes of one: they share the cores of their node."""
    found = launcher(spec.command)
    count = found.option("--nproc-per-node", "--num-processes") if found else None
    if count in ("gpu", "auto"):
        return max(1, spec.resources.gpus_per_node)
    return int(count) if count and count.isdecimal() and int(count) > 0 else 1


def _program(command: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Program name, or the module of `python -m module`, and what follows it."""
    if not command:
        return "", ()
    name = PurePosixPath(command[0]).name
    if not name.startswith("python"):
        return name, command[1:]
    rest = command[1:]
    while rest and rest[0] in ("-u", "-O", "-B", "-I", "-E", "-s"):
        rest = rest[1:]
    if len(rest) >= 2 and rest[0] == "-m":
        return rest[1], rest[2:]
    return name, rest


def _options(arguments: tuple[str, ...]) -> tuple[dict[str, str], str]:
    """The options before the first word that is neither an option nor an option's value, and that word."""
    options: dict[str, str] = {}
    index = 0
    while index < len(arguments) and arguments[index].startswith("-"):
        name, equals, value = arguments[index].partition("=")
        name = name.replace("_", "-")
        index += 1
        if not equals and name not in _WITHOUT_VALUE and index < len(arguments):
            value = arguments[index]
            index += 1
        options[name] = value
    return options, arguments[index] if index < len(arguments) else ""


def python_script(command: tuple[str, ...]) -> str:
    """The script of a plain `python [options] script …`, or ""."""
    program, rest = _program(command)
    if not program.startswith("python") or not rest or rest[0].startswith("-"):
        return ""
    return rest[0]

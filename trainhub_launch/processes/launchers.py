"""Recognises the user's own launcher (torchrun, accelerate, mpirun …) in a command, and its options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from trainhub_launch.spec import RunSpec

# Program or module -> its name in messages. Each of them starts the processes of one node.
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

# Programs and modules that start processes on all nodes from one of them, which is TrainHub's own task.
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

# Options that stand alone. For all others the word behind them is taken for their value. After `-m` or
# `--module` the "script" is a module's name.
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
        "--virtual-local-rank",
        "--use-deepspeed",
        "--use-fsdp",
    }
)


@dataclass(frozen=True)
class Launcher:
    """A launcher in a command. `program` is a key of PER_NODE or an item of HEAD; names in `options` are
    written with dashes; `script` is what it starts, or ""."""

    program: str
    options: dict[str, str]
    script: str

    def option(self, *names: str) -> str | None:
        return next((self.options[name] for name in names if name in self.options), None)


def launcher(command: tuple[str, ...]) -> Launcher | None:
    """Returns the launcher that `command` starts with, or None if it starts with no known one."""
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
    """Returns how many processes the user's launcher starts for each process of the plan; they share the
    cores of their node."""
    program = launcher(spec.command)
    count = program.option("--nproc-per-node", "--num-processes") if program else None
    # Words of torchrun that stand for one process per GPU.
    if count in ("gpu", "auto"):
        return max(1, spec.resources.gpus_per_node)
    return int(count) if count and count.isdecimal() and int(count) > 0 else 1


def _program(command: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Returns the name of the program, or the module of `python -m module`, and the words after it."""
    if not command:
        return "", ()
    name = PurePosixPath(command[0]).name
    if not name.startswith("python"):
        return name, command[1:]
    rest = command[1:]
    # Options of Python that take no value. Behind any other one, such as -c, there is no script to find.
    while rest and rest[0] in ("-u", "-O", "-B", "-I", "-E", "-s"):
        rest = rest[1:]
    if len(rest) >= 2 and rest[0] == "-m":
        return rest[1], rest[2:]
    return name, rest


def _options(arguments: tuple[str, ...]) -> tuple[dict[str, str], str]:
    """Returns the options before the first word that is neither an option nor the value of one, and that
    word."""
    options: dict[str, str] = {}
    index = 0
    while index < len(arguments) and arguments[index].startswith("-"):
        name, equals, value = arguments[index].partition("=")
        # torchrun and accelerate accept both --nproc_per_node and --nproc-per-node.
        name = name.replace("_", "-")
        index += 1
        if not equals and name not in _WITHOUT_VALUE and index < len(arguments):
            value = arguments[index]
            index += 1
        options[name] = value
    return options, arguments[index] if index < len(arguments) else ""


def python_script(command: tuple[str, ...]) -> str:
    """Returns the script of a plain `python [options] script …`, or ""."""
    program, rest = _program(command)
    if not program.startswith("python") or not rest or rest[0].startswith("-"):
        return ""
    return rest[0]

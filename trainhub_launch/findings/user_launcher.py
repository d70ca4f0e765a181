"""Checks launchers in the user's command (torchrun, accelerate, mpirun …) and their options."""

from __future__ import annotations

from collections.abc import Iterator

from trainhub_launch.findings.finding import Finding
from trainhub_launch.findings.words import looks_like_lightning, option, per_node_launcher
from trainhub_launch.processes.launchers import HEAD, Launcher, launcher
from trainhub_launch.spec import RunSpec

_SHELLS = frozenset({"bash", "sh", "zsh", "/bin/bash", "/bin/sh"})
_PROGRAM_OF_MODULE = {
    "horovod.runner.launch": "horovodrun",
    "deepspeed.launcher.runner": "deepspeed",
    "deepspeed.launcher.launch": "deepspeed",
}
_LAUNCHER_OPTIONS = ("--nproc-per-node", "--nnodes", "--node-rank", "--rdzv-endpoint", "--rdzv-backend")


def user_launcher(spec: RunSpec, node_rank: str) -> Iterator[Finding]:
    """Yields findings about a launcher in the command. `node_rank`: the reference that a launcher needs for
    the rank of its node, such as "$NODE_RANK"."""
    program = launcher(spec.command)
    if program and program.program in HEAD:
        yield Finding("error", "command", _head_launcher(program.program, program.script))
    elif program:
        yield from _launcher_options(spec, program, node_rank)
    elif spec.command[:1] and spec.command[0] in _SHELLS and len(spec.command) > 2:
        yield from _inside_a_shell(spec)
    elif not spec.command:
        yield from _launcher_options_for_the_script(spec)
    if looks_like_lightning(spec):
        yield from _lightning(spec)


def _head_launcher(program: str, script: str) -> str:
    name = _PROGRAM_OF_MODULE.get(program, program)
    instead = f"python {script}" if script.endswith(".py") else "the program it should start"
    return (
        f"TrainHub starts the processes on every node itself and builds the mpirun line: leave {name} out, "
        f"give {instead} "
        "as the script or command, and choose the MPI distribution with process_count_per_node"
    )


def _launcher_options(spec: RunSpec, program: Launcher, node_rank: str) -> Iterator[Finding]:
    name, nodes, gpus = per_node_launcher(spec), spec.node_count, spec.resources.gpus_per_node
    count = _number(program.option("--nproc-per-node"))
    if count and gpus and count > gpus:
        yield Finding(
            "error",
            "command",
            f"--nproc_per_node {count} is more than the {gpus} GPU(s) of a node; "
            f"ask for {count} GPUs on each node, or start at most {gpus} processes",
        )
    elif count and count < gpus:
        yield Finding(
            "hint",
            "command",
            f"--nproc_per_node {count} leaves GPUs idle; {gpus} would use all GPUs of a node",
        )
    nnodes = _number(program.option("--nnodes", "--num-machines"))
    if nnodes and nnodes != nodes:
        yield Finding(
            "error",
            "command",
            f"{name} waits for {nnodes} node(s), and the run has {nodes}; make both the same "
            f"(distribution.node_count {nnodes} or --nnodes {nodes})",
        )
    # With a rendezvous of its own, torchrun agrees on node ranks and the head by itself.
    if nodes > 1 and not program.option("--rdzv-endpoint", "--rdzv-backend", "--rdzv-id"):
        yield from _rendezvous(program, name, nodes, node_rank)


def _rendezvous(program: Launcher, name: str, nodes: int, node_rank: str) -> Iterator[Finding]:
    """Yields an error for each option that a launcher on several nodes needs: their number, its own rank, and
    the address of node 0."""
    accelerate = program.program.startswith("accelerate")
    settings = [
        (("--num-machines",) if accelerate else ("--nnodes",), str(nodes)),
        (("--machine-rank",) if accelerate else ("--node-rank",), node_rank),
        (("--main-process-ip",) if accelerate else ("--master-addr",), "$MASTER_ADDR"),
        (("--main-process-port",) if accelerate else ("--master-port",), "$MASTER_PORT"),
    ]
    missing = [f"{names[0]} {value}" for names, value in settings if program.option(*names) is None]
    if missing:
        yield Finding("error", "command", f"on {nodes} nodes {name} also needs {' '.join(missing)}")
    if _number(program.option("--node-rank", "--machine-rank")) is not None:
        message = f"every node would take the same rank; use {node_rank} instead of a number"
        yield Finding("error", "command", message)


def _inside_a_shell(spec: RunSpec) -> Iterator[Finding]:
    # The words of `sh -c` are split at blanks only. A wrong guess costs no more than a warning.
    line = spec.command[-1].split()
    program = next((word for word in line if word in HEAD), "")
    if program:
        yield Finding("warning", "command", _head_launcher(program, ""))


def _launcher_options_for_the_script(spec: RunSpec) -> Iterator[Finding]:
    match = option(spec, *_LAUNCHER_OPTIONS)
    if match:
        yield Finding(
            "warning",
            match.field,
            f"{match.name} is an option of torchrun, and the script will get it as its own; "
            "either drop it and give distribution.process_count, or give a whole torchrun command",
        )


def _lightning(spec: RunSpec) -> Iterator[Finding]:
    nodes = option(spec, "--num-nodes")
    if nodes and nodes.number is not None and nodes.number != spec.node_count:
        yield Finding(
            "error",
            nodes.field,
            f"Lightning would wait for {nodes.number} node(s), and the run has {spec.node_count}; "
            "make both the same",
        )
    devices, gpus = option(spec, "--devices", "--gpus"), spec.resources.gpus_per_node
    if devices and devices.number is not None and gpus and devices.number > gpus:
        yield Finding(
            "error", devices.field, f"{devices.value} devices are more than the {gpus} GPU(s) of a node"
        )
    old = option(spec, "--accelerator")
    if option(spec, "--gpus") or (old and old.value.startswith("ddp")):
        yield Finding(
            "hint",
            "arguments" if not spec.command else "command",
            "--gpus and --accelerator ddp belong to Lightning 1; "
            "in Lightning 2 they are --devices, --accelerator gpu and --strategy ddp",
        )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None

"""The user's own launcher beside TrainHub's, and its options."""

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
    """`node_rank`: what a launcher in the command writes for the rank of its node."""
    found = launcher(spec.command)
    if found and found.program in HEAD:
        yield Finding("error", "command", _head_launcher(found.program, found.script))
    elif found:
        yield from _launcher_options(spec, found, node_rank)
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


def _launcher_options(spec: RunSpec, found: Launcher, node_rank: str) -> Iterator[Finding]:
    name, nodes, gpus = per_node_launcher(spec), spec.node_count, spec.resources.gpus_per_node
    count = _number(found.option("--nproc-per-node"))
    if count and gpus and count > gpus:
        yield Finding(
            "error",
            "command",
            f"--nproc_per_node {count} is more than the {gpus} GPU(s) of a node; "
            f"ask for {count} GPUs on each node, or start at most {gpus} processes",
        )
    elif count and count < gpus:
        yield Finding(
            "hint", "command", f"--nproc_per_node {count} leaves GPUs idle; {gpus} would use all of a node's"
        )
    nnodes = _number(found.option("--nnodes", "--num-machines"))
    if nnodes and nnodes != nodes:
        yield Finding(
            "error",
            "command",
            f"{name} waits for {nnodes} node(s), and the run has {nodes}; make both the same "
            f"(distribution.node_count {nnodes} or --nnodes {nodes})",
        )
    if nodes > 1 and not found.option("--rdzv-endpoint", "--rdzv-backend", "--rdzv-id"):
        yield from _rendezvous(found, name, nodes, node_rank)


def _rendezvous(found: Launcher, name: str, nodes: int, node_rank: str) -> Iterator[Finding]:
    """On several nodes each launcher must hear how many there are, which one it is, and where node 0 is."""
    accelerate = found.program.startswith("accelerate")
    wanted = [
        (("--num-machines",) if accelerate else ("--nnodes",), str(nodes)),
        (("--machine-rank",) if accelerate else ("--node-rank",), node_rank),
        (("--main-process-ip",) if accelerate else ("--master-addr",), "$MASTER_ADDR"),
        (("--main-process-port",) if accelerate else ("--master-port",), "$MASTER_PORT"),
    ]
    missing = [f"{names[0]} {value}" for names, value in wanted if found.option(*names) is None]
    if missing:
        yield Finding("error", "command", f"on {nodes} nodes {name} also needs {' '.join(missing)}")
    if _number(found.option("--node-rank", "--machine-rank")) is not None:
        message = f"every node would take the same rank; use {node_rank} instead of a number"
        yield Finding("error", "command", message)


def _inside_a_shell(spec: RunSpec) -> Iterator[Finding]:
    line = spec.command[-1].split()
    program = next((word for word in line if word in HEAD), "")
    if program:
        yield Finding("warning", "command", _head_launcher(program, ""))


def _launcher_options_for_the_script(spec: RunSpec) -> Iterator[Finding]:
    found = option(spec, *_LAUNCHER_OPTIONS)
    if found:
        yield Finding(
            "warning",
            found.field,
            f"{found.name} is an option of torchrun, and the script will get it as its own; "
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
            "--gpus and --accelerator ddp are of Lightning 1; "
            "in Lightning 2 they are --devices, --accelerator gpu and --strategy ddp",
        )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None

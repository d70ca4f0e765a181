"""LaunchPlan: which processes start on which node, with which arguments and environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainhub_launch.json_types import JsonObject

VERSION = 1

# The item of `NodeCommand.launcher` that the node replaces by its own rank wrapper: the argv on one node, on
# several a name that each of them knows.
RANK_WRAPPER = "{rank}"

# The item of `NodeCommand.launcher` that the node replaces by the one string that Open MPI takes as its
# remote start command (`plm_rsh_agent`; Open MPI 5 knows it by that name too); only in plans of several
# nodes.
RSH_AGENT = "{rsh_agent}"

# What a process gets from its node besides `PlannedProcess.env`; nothing else is passed on.
BASE_ENVIRONMENT = ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "USER")


@dataclass(frozen=True)
class Reference:
    """A value that the plan leaves open. `kind` is `secret` (the secret `name`) or `launch` (assigned when
    the run is launched).

    Names of the kind `launch`: run_id, attempt, url, token, port, work_dir, node_dir,
    checkpoint_dir, input_NAME for each input of the spec, and files_of_NAME for those by reference."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"<secret {self.name}>" if self.kind == "secret" else "<assigned at launch>"


EnvValue = str | Reference


@dataclass(frozen=True)
class PlannedProcess:
    """One rank as it will be started.

    `argv` is unexpanded (`$RANK` is still in it); argv[0] "python" means the interpreter of the environment.
    `env` is the complete environment with the user's variables, without BASE_ENVIRONMENT. Its PYTHONPATH is
    either the user's value, before which the node puts its own entry, or Reference("launch", "node_dir"),
    which the node replaces. `provided`: name -> value of variables that another program (Open MPI) sets.
    `gpus` are the UUIDs meant for this process; CUDA_VISIBLE_DEVICES in `env` lists what it sees, which is
    every GPU of the node if scripts choose by LOCAL_RANK. `local_rank` is the index on its node. `decides`:
    whether the exit of the process counts for the outcome of the run; False for processes that only serve
    others (TensorFlow's workers beside a chief)."""

    rank: int
    local_rank: int
    node_rank: int
    role: str
    log_name: str
    argv: tuple[str, ...]
    env: Mapping[str, EnvValue]
    gpus: tuple[str, ...] = ()
    provided: Mapping[str, str] = field(default_factory=dict)
    decides: bool = True


@dataclass(frozen=True)
class NodeCommand:
    """The part of one node. `launcher` is the argv of mpirun on the head; if it is empty, the node starts
    each of `processes` itself, except on the other nodes of an MPI plan. The rank wrapper that mpirun starts
    finds its process in `processes` by OMPI_COMM_WORLD_RANK. `launcher_env` is for mpirun, or for its daemon
    on the other nodes; the node itself decides whether these may run as root (OMPI_ALLOW_RUN_AS_ROOT,
    …_CONFIRM)."""

    node: str
    node_rank: int
    address: str
    processes: tuple[PlannedProcess, ...]
    launcher: tuple[str, ...] = ()
    launcher_env: Mapping[str, EnvValue] = field(default_factory=dict)


@dataclass(frozen=True)
class LaunchPlan:
    """The plan of a whole run. `ports`: name -> port on the head (or of a task). `notes`: sentences for the
    run's page."""

    framework: str
    commands: tuple[NodeCommand, ...]
    ports: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def processes(self) -> tuple[PlannedProcess, ...]:
        return tuple(process for command in self.commands for process in command.processes)

    def to_json(self) -> dict[str, object]:
        return {
            "version": VERSION,
            "framework": self.framework,
            "ports": dict(self.ports),
            "notes": list(self.notes),
            "commands": [command_to_json(command) for command in self.commands],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LaunchPlan:
        return cls(
            framework=data["framework"],
            ports=dict(data["ports"]),
            notes=tuple(data["notes"]),
            commands=tuple(command_from_json(item) for item in data["commands"]),
        )


def command_to_json(command: NodeCommand) -> dict[str, object]:
    return {
        "node": command.node,
        "node_rank": command.node_rank,
        "address": command.address,
        "launcher": list(command.launcher),
        "launcher_env": env_to_json(command.launcher_env),
        "processes": [_process_to_json(process) for process in command.processes],
    }


def command_from_json(data: Mapping[str, Any]) -> NodeCommand:
    return NodeCommand(
        node=data["node"],
        node_rank=data["node_rank"],
        address=data["address"],
        launcher=tuple(data["launcher"]),
        launcher_env=env_from_json(data["launcher_env"]),
        processes=tuple(_process_from_json(item) for item in data["processes"]),
    )


def env_to_json(env: Mapping[str, EnvValue]) -> dict[str, Any]:
    return {
        name: {"kind": value.kind, "name": value.name} if isinstance(value, Reference) else value
        for name, value in env.items()
    }


def env_from_json(data: Mapping[str, Any]) -> dict[str, EnvValue]:
    return {
        name: value if isinstance(value, str) else Reference(kind=value["kind"], name=value["name"])
        for name, value in data.items()
    }


def _process_to_json(process: PlannedProcess) -> JsonObject:
    return {
        "rank": process.rank,
        "local_rank": process.local_rank,
        "node_rank": process.node_rank,
        "role": process.role,
        "log_name": process.log_name,
        "argv": list(process.argv),
        "env": env_to_json(process.env),
        "gpus": list(process.gpus),
        "provided": dict(process.provided),
        "decides": process.decides,
    }


def _process_from_json(data: Mapping[str, Any]) -> PlannedProcess:
    return PlannedProcess(
        rank=data["rank"],
        local_rank=data["local_rank"],
        node_rank=data["node_rank"],
        role=data["role"],
        log_name=data["log_name"],
        argv=tuple(data["argv"]),
        env=env_from_json(data["env"]),
        gpus=tuple(data["gpus"]),
        provided=dict(data["provided"]),
        decides=data["decides"],
    )

"""LaunchPlan: exactly which processes start where, with which arguments and environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

VERSION = 1

RANK_WRAPPER = "{rank}"
"""The item of `NodeCommand.launcher` that the node replaces by its own rank wrapper: the argv on one node, on
several a name that each of them knows."""

RSH_AGENT = "{rsh_agent}"
"""The item of `NodeCommand.launcher` that the node replaces by the one string that Open MPI takes as its
remote start command (`plm_rsh_agent`; Open MPI 5 knows it by that name too); only in plans of several
nodes."""

BASE_ENVIRONMENT = ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "USER")
"""What a process gets from its node besides `PlannedProcess.env`; nothing else is passed on."""


@dataclass(frozen=True)
class Reference:
    """A value that is not in the plan: `kind` is `secret` (by `name`) or `launch` (told at launch).

    `launch` names: run_id, attempt, url, token, port, work_dir, node_dir.
    """

    kind: str
    name: str

    def __str__(self) -> str:
        return f"<secret {self.name}>" if self.kind == "secret" else "<assigned at launch>"


EnvValue = str | Reference


@dataclass(frozen=True)
class PlannedProcess:
    """One rank as it will start.

    `argv` is unexpanded (`$RANK` stays); argv[0] "python" means the environment's interpreter.
    `env` is the whole contract environment with the user's variables, without BASE_ENVIRONMENT.
    PYTHONPATH there is what the *user* gave, or Reference("launch", "node_dir"); the node puts its
    own entry in front of the former and fills in the latter.
    `provided` exist in the process but are set by someone else (Open MPI): name -> the value it will have.
    `gpus` are the UUIDs meant for this process; CUDA_VISIBLE_DEVICES in `env` says what it sees, which
    is every GPU of the node where scripts choose by LOCAL_RANK. `local_rank` is the index on its node.
    `decides`: the process whose exit decides the run where others only serve (TensorFlow's chief).
    """

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
    """One node's part. `launcher` is the head's mpirun argv, or empty (then the node starts each of
    `processes` itself, except on the other nodes of an MPI plan); the rank wrapper that mpirun starts finds
    its process in `processes` by OMPI_COMM_WORLD_RANK. `launcher_env` is for mpirun, or for its daemon on the
    other nodes; whether these may run as root (OMPI_ALLOW_RUN_AS_ROOT, …_CONFIRM) is for the node to say."""

    node: str
    node_rank: int
    address: str
    processes: tuple[PlannedProcess, ...]
    launcher: tuple[str, ...] = ()
    launcher_env: Mapping[str, EnvValue] = field(default_factory=dict)


@dataclass(frozen=True)
class LaunchPlan:
    """`ports`: name -> port on the head (or per task), `notes`: sentences the run page shows."""

    framework: str
    commands: tuple[NodeCommand, ...]
    ports: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def processes(self) -> tuple[PlannedProcess, ...]:
        return tuple(process for command in self.commands for process in command.processes)

    def to_json(self) -> dict[str, Any]:
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


def command_to_json(command: NodeCommand) -> dict[str, Any]:
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


def _process_to_json(process: PlannedProcess) -> dict[str, Any]:
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

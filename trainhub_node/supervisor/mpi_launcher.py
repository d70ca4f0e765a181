"""MPI: the child starts mpirun, or on the run's other nodes its daemon; these start the rank wrappers."""

from __future__ import annotations

import os

from trainhub_launch.json_types import JsonValue
from trainhub_launch.log_names import LAUNCHER_LOG
from trainhub_node import records
from trainhub_node.supervisor import child, in_container, openmpi, rank, variables
from trainhub_node.supervisor.gang import PreparationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

    from trainhub_node.supervisor.gang import Gang

RANK_WRAPPER = (
    "{rank}"  # These two are trainhub_launch.plan's; a test holds them together, as importing it costs 20 ms.
)
RSH_AGENT = "{rsh_agent}"
WRAPPER_PROGRAM, RSH_PROGRAM = "trainhub-rank", "trainhub-rsh"
ROOT_FOLDER = "/"
# The variables that name it to Open MPI 4 and 5.
REMOTE_SHELLS = ("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent")
# Open MPI refuses to run as root unless it is told twice, under other names in version 5.
ALLOW_ROOT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


def launcher_environment(gang: Gang) -> dict[str, str]:
    """Returns the environment of mpirun and its daemons."""
    env = variables.process_environment(gang, gang.order["command"]["launcher_env"], gang.python)
    # A user's own modules must not affect the wrapper that mpirun starts.
    env.pop("PYTHONPATH", None)
    for process in gang.processes:
        for name, value in rank.secret_variables(process["env"]):
            # The wrappers inherit it, so that it stands in no file.
            env[f"{rank.SECRET_PREFIX}{name}"] = gang.secrets[value]
    if gang.is_multi_node:
        env["PATH"] = f"{gang.folder.bin}:{env['PATH']}"
    elif gang.uses_image or in_container.find_program(gang, env["PATH"], "ssh", "rsh") is None:
        env = _with_remote_shell(gang, env)
    return {**ALLOW_ROOT, **env}


def _with_remote_shell(gang: Gang, env: Mapping[str, str]) -> dict[str, str]:
    """Open MPI does not start where there is no remote shell, as in images and on nodes without ssh, even if
    it calls none."""
    return {**dict.fromkeys(REMOTE_SHELLS, gang.python), **env}


def require_program(gang: Gang, env: Mapping[str, str], *names: str) -> str:
    """Returns the first of `names` on the PATH of the environment. Raises PreparationFailed."""
    path = in_container.find_program(gang, env["PATH"], *names)
    if path is not None:
        return path
    if gang.uses_image:
        image = gang.order["environment"]["image"]["reference"]
        raise PreparationFailed(
            "launch",
            f"The image {image} has no Open MPI: there is no {' and no '.join(names)} on its PATH. Runs with "
            "MPI need an image that has it, and Python 3.9 or newer.",
        )
    node = gang.terms["node"]
    raise PreparationFailed(
        "launch",
        f"node {node} has no Open MPI: there is no {' and no '.join(names)} on its PATH. Install it there "
        "(Debian: openmpi-bin), or add openmpi to the packages of the environment.",
    )


def required_programs(gang: Gang) -> tuple[str, ...]:
    return tuple(gang.order["command"]["launcher"][:1]) or openmpi.DAEMONS


def start(gang: Gang) -> None:
    env = launcher_environment(gang)
    if gang.is_multi_node:
        _write_programs(gang)
    if gang.order["command"]["launcher"]:
        path = require_program(gang, env, *required_programs(gang))
        _prepare_ranks(gang, {})
        _fork_launcher(
            gang,
            path,
            [argument for item in gang.order["command"]["launcher"] for argument in _arguments(gang, item)],
            env,
        )
    else:
        _start_daemon(gang, env)


def _arguments(gang: Gang, item: str) -> list[str]:
    if item == RANK_WRAPPER:
        return [WRAPPER_PROGRAM] if gang.is_multi_node else [*_wrapper(gang), "rank", gang.folder.path]
    return [RSH_PROGRAM if item == RSH_AGENT else item]


def _wrapper(gang: Gang) -> list[str]:
    """Returns the command of the wrapper, in a container with the Python of the image."""
    wrapper = list(gang.terms["wrapper"])
    return [gang.python, *wrapper[1:]] if gang.uses_image else wrapper


def _start_daemon(gang: Gang, env: dict[str, str]) -> None:
    gang.log("Waiting until mpirun, on the head of the run, asks for its daemon.")
    argv = openmpi.daemon_argv(child.wait_for_record(gang, gang.folder.daemon)["argv"])
    path = in_container.find_program(gang, env["PATH"], argv[0])
    if path is None:
        raise PreparationFailed(
            "launch",
            f"mpirun on the head of the run asks for {argv[0]}, which node {gang.terms['node']} does "
            "not have; "
            "install the same version of Open MPI on every node.",
        )
    _prepare_ranks(gang, {"prefix": os.path.dirname(os.path.dirname(path))})
    _fork_launcher(gang, path, argv, _with_remote_shell(gang, env))


def _prepare_ranks(gang: Gang, extra: Mapping[str, JsonValue]) -> None:
    """Writes the records and logs of the wrappers, which mpirun starts under the account of the ranks."""
    folder, account = gang.folder, gang.terms["account"]
    start_records = [
        {**_without_secrets(start, process["env"]), **extra}
        for start, process in zip(child.start_records(gang), gang.processes, strict=True)
    ]
    records.write(folder.starts, {str(start["rank"]): start for start in start_records})
    for start in start_records:
        os.close(
            os.open(folder.log(start["log"]), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        )
    if account is not None:
        # The folder last: from then on the run may make any entry in it.
        _change_owner(
            account, [folder.starts, *(folder.log(start["log"]) for start in start_records), folder.ranks]
        )


def _without_secrets(start: Mapping[str, Any], planned: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the start record with the names of secret variables in place of their values."""
    names = [name for name, _ in rank.secret_variables(planned)]
    env = {name: value for name, value in start["env"].items() if name not in names}
    return {**start, "env": env, "secrets": names}


def _write_programs(gang: Gang) -> None:
    os.makedirs(gang.folder.bin, exist_ok=True)
    # mpirun, perhaps of another account, must find the programs.
    os.chmod(gang.folder.bin, 0o755)  # noqa: S103
    for name, role in ((WRAPPER_PROGRAM, "rank"), (RSH_PROGRAM, "rsh")):
        command = " ".join(_quote(argument) for argument in (*_wrapper(gang), role, gang.folder.path))
        fd = os.open(f"{gang.folder.bin}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o755)
        os.write(fd, f'#!/bin/sh\nexec {command} "$@"\n'.encode())
        # Again after `os.open`, because the umask, 0o077 here, has removed the rights of other accounts.
        os.fchmod(fd, 0o755)
        os.close(fd)


def _quote(argument: str) -> str:
    escaped = argument.replace("'", "'\\''")
    return f"'{escaped}'"


def _fork_launcher(gang: Gang, program: str, argv: list[str], env: dict[str, str]) -> None:
    """Starts mpirun or its daemon under the account of the ranks: Open MPI only lets processes of one account
    communicate."""
    gang.check_stop()
    gang.launcher = os.fork() if gang.namespaces is None else gang.namespaces.fork()
    if gang.launcher == 0:
        try:
            _exec_launcher(gang, program, argv, env)
        except BaseException as error:
            child.die(gang, f"{program} could not be started: {error!r}")
    child.enter_running(gang)


def _exec_launcher(gang: Gang, program: str, argv: list[str], env: dict[str, str]) -> NoReturn:
    path = gang.folder.log(LAUNCHER_LOG)
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    rank.redirect_output(log)
    if gang.group is not None:
        gang.group.enter()
    if gang.namespaces is not None:
        gang.namespaces.enter()
    rank.switch_account(gang.terms["account"])
    # A group of its own: a signal for it must not reach the supervisor.
    os.setpgid(0, 0)
    os.chdir(ROOT_FOLDER if gang.is_multi_node else gang.folder.work)
    rank.reset_signals()
    os.execve(program, argv, env)


def _change_owner(account: Mapping[str, Any], paths: list[str]) -> None:
    for path in paths:
        os.chown(path, account["uid"], account["gid"], follow_symlinks=False)

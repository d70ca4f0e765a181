"""Starts the container of an attempt, and makes the namespaces in it that the ranks enter.

One container for all ranks of the attempt on this node. It only holds the image and the run's folders
together. The ranks are started as without a container, so their logs, signals and exit codes pass nobody
else. The agent removes the container when the attempt is over."""

from __future__ import annotations

import os

from trainhub_node import records
from trainhub_node.containers.container import Container
from trainhub_node.containers.engine import DOCKER, PODMAN, Engine, EngineError, Mount
from trainhub_node.containers.gpus import docker_has_cdi
from trainhub_node.containers.view import ContainerView
from trainhub_node.environments import engine_call, images, registry_login
from trainhub_node.isolation import devices, namespaces, syscalls
from trainhub_node.supervisor import in_container, separation, variables
from trainhub_node.supervisor.gang import PreparationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trainhub_node.supervisor.gang import Gang

START_TIMEOUT_S = 120.0
# In the machine's own places for temporary files a run has its own.
TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108
NETWORK_DEVICES = devices.NETWORK
MISSING_IMAGE = ("no such image", "not known", "unable to find image")
NO_GPU = {
    PODMAN: (
        ("cdi device",),
        "write down its GPUs for podman: nvidia-ctk cdi generate --device-name-strategy=uuid "
        "--output=/etc/cdi/nvidia.yaml",
    ),
    DOCKER: (
        ("device driver", "nvidia-container"),
        "install the NVIDIA Container Toolkit there, and run nvidia-ctk runtime configure --runtime=docker",
    ),
}


def start(gang: Gang) -> None:
    """Starts the container of the run and makes namespaces in it, or only fetches the image for a build. Sets
    `gang.image_variables`, `gang.namespaces` and `gang.python`. Raises PreparationFailed, and
    StopRequested."""
    gang.check_stop()
    terms = gang.terms.get("engine")
    if terms is None:
        raise PreparationFailed(
            "environment",
            f"Node {gang.terms['node']} has no container engine: install podman or docker there, with "
            "catatonit, and see its page.",
        )
    engine = Engine.from_terms(terms)
    if gang.order.get("kind", "run") != "run":
        # An order to build: the image is all of it.
        images.fetch_image(gang, engine)
        return
    _make_folders(gang)
    gang.image_variables = images.image_variables(gang, engine)
    is_new = False
    while (error := _start(gang, engine)) is not None:
        is_missing = any(sign in error.lower() for sign in MISSING_IMAGE)
        if is_new or not is_missing:
            raise _start_failure(gang, engine, error)
        # Somebody has removed the image from this node since a run used it.
        gang.image_variables, is_new = images.fetch_image(gang, engine), True
    # Only now does the child give up rights: an account that is not root needs them for podman.
    _enter(gang, _container(gang, engine))


def _enter(gang: Gang, container: Container) -> None:
    gang.check_stop()
    syscalls.adopt_orphans()
    if gang.terms.get("isolation"):
        separation.enter_domain(gang)
    # It imports a module at its first call, which ranks need and do not find in the image.
    os.get_exec_path({})
    account = gang.terms["account"]
    view = ContainerView(
        writable=[mount.target for mount in _mounts(gang) if not mount.is_read_only],
        account_lines=_account_lines(account, gang.folder.home) if account else {},
        shm_bytes=int(gang.order.get("memory_bytes") or 0) // 2,
        inputs={path: (device, inode) for path, (_, device, inode) in gang.inputs.items()},
    )
    try:
        gang.namespaces = container.make_namespaces(view, is_agents=account is None)
    except namespaces.NamespaceError as error:
        raise PreparationFailed(
            "environment", f"Node {gang.terms['node']} could not enter the run's container: {error}."
        ) from error
    path = (gang.image_variables or {}).get("PATH") or variables.DEFAULT_PATH
    gang.python = in_container.find_program(gang, path, "python3", "python") or ""
    if not gang.python and _needs_python(gang):
        image = gang.order["environment"]["image"]["reference"]
        raise PreparationFailed(
            "environment",
            f"The image {image} has no Python: there is neither python3 nor python on its PATH. Take an "
            "image with Python, or give the run a command instead of a script.",
        )


def _needs_python(gang: Gang) -> bool:
    # Under MPI the program that starts a rank does.
    return gang.uses_mpi or any(process["argv"][0] == "python" for process in gang.processes)


def _make_folders(gang: Gang) -> None:
    account = gang.terms["account"]
    if account is not None:
        names, _ = devices.device_nodes(devices.gpu_uuids(gang.processes))
        # Looked up outside: the image's files of accounts, and the libraries that read them, are anybody's.
        groups = account["groups"]
        if groups is None:
            has_own = gang.terms["isolation"]["own_account"]
            groups = [] if has_own else os.getgrouplist(account["name"], account["gid"])
        account["groups"] = sorted({*groups, *devices.node_groups(names)})
    separation.make_folder(gang.folder.home, account, 0o700)
    separation.make_folder(gang.folder.temporary, account, separation.STICKY_FOR_ALL)


def _mounts(gang: Gang) -> list[Mount]:
    folder, isolation = gang.folder, gang.terms.get("isolation") or {}
    mounts = [Mount(folder.temporary, place) for place in TEMPORARY]
    if gang.terms["account"] is None:
        # The agent's account could change all files of the attempt, from which the agent knows what to start.
        mounts += [Mount(path) for path in (folder.work, *separation.agents_writable(gang))]
        mounts += [Mount(path, is_read_only=True) for path in separation.agents_visible(gang)]
    else:
        mounts.append(Mount(folder.path))
    mounts += [Mount(path) for path in isolation.get("shared", ()) if os.path.exists(path)]
    mounts += [Mount(real, path, is_read_only=True) for path, (real, _, _) in gang.inputs.items()]
    mounts += [Mount(path, is_read_only=is_read_only) for path, (_, is_read_only) in gang.shares.items()]
    read_only = [gang.terms["sites"], *filter(None, [gang.data_tree])]
    if gang.uses_mpi:
        # The program that mpirun starts for each rank.
        packages = os.path.dirname(os.path.dirname(gang.terms["wrapper"][-1]))
        read_only += [f"{packages}/trainhub_node", f"{packages}/trainhub_launch"]
    return mounts + [Mount(path, is_read_only=True) for path in read_only]


def _start(gang: Gang, engine: Engine) -> str | None:
    """Starts the container. Returns the engine's error, or None."""
    gpus = sorted(devices.gpu_uuids(gang.processes))
    try:
        command = engine.start_command(
            registry_login.image_name(gang.order),
            gang.folder.run,
            gang.folder.attempt,
            _mounts(gang),
            devices=[f"/dev/{name}" for name in NETWORK_DEVICES if os.path.exists(f"/dev/{name}")],
            gpus=gpus,
            gpus_by_cdi=not gpus or _has_cdi(gang, engine, gpus),
            pid_file=gang.folder.container_pid,
        )
        result = engine_call.call_engine(gang, command, engine.start_variables, timeout_s=START_TIMEOUT_S)
    except EngineError as error:
        return str(error)
    except engine_call.EngineTimeout:
        return f"it did not answer within {START_TIMEOUT_S:.0f} s"
    return None if result.code == 0 else " ".join(result.errors[-2:]) or result.last_error


def _has_cdi(gang: Gang, engine: Engine, gpus: list[str]) -> bool:
    """Returns whether the engine gets GPUs by CDI, which podman always does."""
    if engine.name == PODMAN:
        return True
    command = engine.info_command()
    result = engine_call.call_engine(gang, command, engine.variables, timeout_s=START_TIMEOUT_S)
    if result.code:
        raise EngineError(result.last_error)
    return docker_has_cdi(records.loads_text(result.output), gpus)


def _start_failure(gang: Gang, engine: Engine, error: str) -> PreparationFailed:
    sentence = f"{engine.name} could not start a container on node {gang.terms['node']}: {error.rstrip('.')}."
    signs, remedy = NO_GPU[engine.name]
    if any(sign in error.lower() for sign in signs):
        sentence += f" For its GPUs, {remedy}."
    return PreparationFailed("environment", sentence)


def _container(gang: Gang, engine: Engine) -> Container:
    key = gang.folder.run, gang.folder.attempt
    try:
        if engine.name == PODMAN:
            with open(gang.folder.container_pid, encoding="ascii") as file:
                return Container(int(file.read()))
        result = engine_call.call_engine(
            gang, engine.pid_command(*key), engine.start_variables, timeout_s=START_TIMEOUT_S
        )
        return Container(int(result.output))
    except (OSError, ValueError, engine_call.EngineTimeout) as error:
        raise _start_failure(gang, engine, f"it ended at once ({error})") from error


def _account_lines(account: dict[str, Any], home: str) -> dict[str, str]:
    name, uid, gid = account["name"], account["uid"], account["gid"]
    return {
        "/etc/passwd": f"{name}:x:{uid}:{gid}::{home}:{separation.SHELL}",
        "/etc/group": f"{name}:x:{gid}:",
    }

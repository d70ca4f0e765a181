"""Separates an attempt from everything else on its node before its ranks start: see
`trainhub_node.isolation`."""

from __future__ import annotations

import os

from trainhub_node.isolation import devices, landlock, mounts, namespaces, overlays, syscalls
from trainhub_node.supervisor.gang import PreparationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from trainhub_node.supervisor.gang import Gang

SHELL = "/bin/sh"
ACCOUNT_FILES = {"passwd": "/etc/passwd", "group": "/etc/group"}
STICKY_FOR_ALL = 0o1777


def separate(gang: Gang) -> None:
    """Makes what an account of the run's own needs, and sets `gang.namespaces` where this node has them.
    Raises PreparationFailed, and StopRequested."""
    gang.check_stop()
    # The supervisor does this, too, but only after it has been loaded, and a wrapper may die before that.
    syscalls.adopt_orphans()
    enter_domain(gang)
    terms, account = gang.terms["isolation"], gang.terms["account"]
    is_agents = account is None
    names, is_exact = devices.device_nodes(devices.gpu_uuids(gang.processes))
    if not is_exact:
        gang.log("This run sees the device nodes of all GPUs: those of its own are not known here.")
    files = {}
    if terms["own_account"]:
        account["groups"] = devices.node_groups(names)
        make_folder(gang.folder.home, account, 0o700)
        files = _write_account_files(gang.folder.account_files, account)
    if not terms["namespaces"]:
        return
    make_folder(gang.folder.temporary, account, STICKY_FOR_ALL)
    view = mounts.View(
        # The agent's account could change all files of the attempt, from which the agent knows what to start.
        own=gang.folder.work if is_agents else gang.folder.path,
        temporary=gang.folder.temporary,
        hidden=terms["hidden"],
        visible=[
            *terms["visible"],
            *_installations(gang),
            *filter(None, [gang.data_tree]),
            *(path for path, (_, is_read_only) in gang.shares.items() if is_read_only),
            *(agents_visible(gang) if is_agents else ()),
        ],
        writable=[
            *(terms["shared"] if terms["own_account"] or is_agents else ()),
            *(agents_writable(gang) if is_agents else ()),
            *(path for path, (_, is_read_only) in gang.shares.items() if not is_read_only),
        ],
        inputs=gang.inputs,
        overlays=_overlays(gang),
        files=files,
        devices=names,
        # Half of what the run may have, as the kernel does by itself; 0 is the kernel's half of the machine.
        shm_bytes=int(gang.order.get("memory_bytes") or 0) // 2,
        # What the agent's account may write includes what its next session, or the agent, executes.
        is_read_only=terms["own_account"] or is_agents,
    )
    gang.namespaces = _make(gang, view, "launch")
    if any(not overlays.has_overlay(gang.namespaces.holder, path) for path in view.overlays):
        gang.log("This run cannot write beside its data: this node's kernel or file system has no overlays.")


def _overlays(gang: Gang) -> dict[str, str]:
    if not gang.data_tree:
        return {}
    overlays.make_folders(gang.folder.data_changes, gang.terms["account"])
    return {os.path.realpath(gang.data_tree): gang.folder.data_changes}


def separate_build(
    gang: Gang, folder: str, scratch: str, visible: Sequence[str] = ()
) -> namespaces.Namespaces | None:
    """Returns namespaces in which the agent's account builds an environment, because a build may execute what
    its packages contain: it can write into `folder` and `scratch` only, and read `visible` besides what runs
    can. None where runs have none. Raises PreparationFailed."""
    terms = gang.terms.get("isolation")
    if not terms or not terms.get("agent_account"):
        return None
    temporary = f"{scratch}/tmp"  # noqa: S108
    os.mkdir(temporary, 0o700)
    view = mounts.View(
        own=scratch,
        temporary=temporary,
        hidden=terms["hidden"],
        visible=[*_installations(gang), *visible],
        writable=[folder],
        inputs={},
        overlays={},
        files={},
        devices=devices.device_nodes(set())[0],
        shm_bytes=0,
        is_read_only=True,
    )
    return _make(gang, view, "environment")


def _make(gang: Gang, view: mounts.View, kind: str) -> namespaces.Namespaces:
    try:
        return namespaces.make(lambda: mounts.arrange(view))
    except namespaces.NamespaceError as error:
        raise PreparationFailed(
            kind, f"Node {gang.terms['node']} could not separate this run from others: {error}."
        ) from error


def enter_domain(gang: Gang) -> None:
    """Enters the domain of the attempt, in which all its processes are, where the kernel has such. Before
    anything else is started: this process may neither signal nor examine what is outside of it."""
    try:
        if landlock.has_scopes():
            if os.geteuid() != 0:
                # The kernel's condition. It does not let an account that is not root set rights in its
                # namespaces either.
                syscalls.forbid_new_privileges()
            landlock.enter_domain()
    except OSError as error:
        raise PreparationFailed(
            "launch", f"Node {gang.terms['node']} could not separate this run from others: {error.strerror}."
        ) from error


def agents_writable(gang: Gang) -> list[str]:
    """Makes what a run with the agent's account may write besides its working folder. Returns the paths."""
    folder = gang.folder
    make_folder(folder.home, None, 0o700)
    if not gang.uses_mpi:
        return [folder.home]
    # Its wrappers run inside, too.
    logs = [folder.log(process["log_name"]) for process in gang.processes]
    for path in logs:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    return [folder.home, folder.ranks, *logs]


def agents_visible(gang: Gang) -> list[str]:
    """Returns what a run with the agent's account may read besides its working folder: the folder of notices,
    that of addresses of data, and that of our programs, which mpirun finds by name. It is made here, so that
    it can be shown to the run before anything is in it."""
    folders = [gang.folder.notices]
    if gang.references is not None:
        folders.append(gang.folder.references)
    if gang.uses_mpi:
        os.makedirs(gang.folder.bin, exist_ok=True)
        folders.append(gang.folder.bin)
    return folders


def make_folder(path: str, account: dict[str, Any] | None, mode: int) -> None:
    """Makes a folder of the run's, unless it is there. `account`: None for the agent's own."""
    if not os.path.isdir(path):
        os.mkdir(path, 0o700)
        os.chmod(path, mode)
        if account is not None:
            os.chown(path, account["uid"], account["gid"])


def _write_account_files(folder: str, account: dict[str, Any]) -> dict[str, str]:
    """Writes the machine's files of accounts with a line for this one. Returns the path that each stands
    for."""
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o755)  # noqa: S103 - every account may read these
    name, uid, gid, home = account["name"], account["uid"], account["gid"], account["home"]
    lines = {"passwd": f"{name}:x:{uid}:{gid}::{home}:{SHELL}\n", "group": f"{name}:x:{gid}:\n"}
    files = {}
    for kind, original in ACCOUNT_FILES.items():
        if not os.path.isfile(original):
            continue
        with open(original, "rb") as file:
            content = file.read()
        if content and not content.endswith(b"\n"):
            content += b"\n"
        path = f"{folder}/{kind}"
        with open(path, "wb") as file:
            file.write(content + lines[kind].encode())
        os.chmod(path, 0o644)
        files[original] = path
    return files


def _installations(gang: Gang) -> Iterator[str]:
    """Yields the folders of the interpreters of this run, which may lie where runs see nothing else."""
    programs = (gang.python, gang.terms["python"], gang.terms["wrapper"][0])
    for program in filter(None, (*programs, gang.order["environment"]["python"])):
        for path in (program, os.path.realpath(program)):
            folder = os.path.dirname(path)
            if os.path.basename(folder) == "bin":
                yield os.path.dirname(folder)

"""Separates an attempt from everything else on its node before its ranks start: see
`trainhub_node.isolation`."""

from __future__ import annotations

import os

from trainhub_node.isolation import devices, landlock, mounts, namespaces, syscalls
from trainhub_node.supervisor.gang import PreparationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
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
    _enter_domain(gang)
    terms, account = gang.terms["isolation"], gang.terms["account"]
    names, is_exact = devices.device_nodes(devices.gpu_uuids(gang.processes))
    if not is_exact:
        gang.log("This run sees the device nodes of all GPUs: those of its own are not known here.")
    files = {}
    if terms["own_account"]:
        account["groups"] = devices.node_groups(names)
        _make_folder(gang.folder.home, account, 0o700)
        files = _write_account_files(gang.folder.account_files, account)
    if not terms["namespaces"]:
        return
    _make_folder(gang.folder.temporary, account, STICKY_FOR_ALL)
    view = mounts.View(
        own=gang.folder.path,
        temporary=gang.folder.temporary,
        hidden=terms["hidden"],
        visible=[*terms["visible"], *_installations(gang)],
        writable=terms["shared"] if terms["own_account"] else (),
        files=files,
        devices=names,
        # Half of what the run may have, as the kernel does by itself; 0 is the kernel's half of the machine.
        shm_bytes=int(gang.order.get("memory_bytes") or 0) // 2,
        is_read_only=terms["own_account"],
    )
    try:
        gang.namespaces = namespaces.make(view)
    except namespaces.NamespaceError as error:
        raise PreparationFailed(
            "launch", f"Node {gang.terms['node']} could not separate this run from others: {error}."
        ) from error


def _enter_domain(gang: Gang) -> None:
    """Enters the domain of the attempt, in which all its processes are, where the kernel has such. Before
    anything else is started: this process may neither signal nor examine what is outside of it."""
    try:
        if landlock.has_scopes():
            landlock.enter_domain()
    except OSError as error:
        raise PreparationFailed(
            "launch", f"Node {gang.terms['node']} could not separate this run from others: {error.strerror}."
        ) from error


def _make_folder(path: str, account: dict[str, Any], mode: int) -> None:
    if not os.path.isdir(path):
        os.mkdir(path, 0o700)
        os.chmod(path, mode)
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
    for program in (gang.python, gang.terms["python"], gang.terms["wrapper"][0]):
        for path in (program, os.path.realpath(program)):
            folder = os.path.dirname(path)
            if os.path.basename(folder) == "bin":
                yield os.path.dirname(folder)

"""Provides the interpreter of a run: an existing one, or that of a cached virtual environment, which is built
under a lock.

An environment is complete when its marker exists, which is written last. A run holds its lock shared while
its processes live; building and removing need it exclusively. `build` makes a missing one."""

from __future__ import annotations

import fcntl
import os

from trainhub_node import records
from trainhub_node.supervisor.gang import Gang, PreparationFailed
from trainhub_node.untrusted import removal

CACHED_KINDS = ("venv", "conda")
MARKER = "trainhub-complete"
# Its modules are not all compiled yet: see `late_modules`.
UNCOMPILED = "trainhub-uncompiled"
# The variables that activating a conda environment sets, found once, when it is built.
ACTIVATION = "trainhub-activation.json"
REBUILT = "-rebuilt"
# Folders beside an environment during its build: the builder's own, its finished tree, and the copy of that.
SCRATCH, BUILT, FRESH = SUFFIXES = (".scratch", ".built", ".fresh")


def prepare_interpreter(gang: Gang) -> str:
    """Returns the run's interpreter, ready to use; "" if the environment must be built or started first.

    Raises PreparationFailed, and StopRequested."""
    spec = gang.order["environment"]
    if gang.uses_image or gang.order.get("make") or gang.order.get("probe"):
        return ""
    python = spec["python"] or gang.terms["python"]
    if not _is_executable(python):
        raise PreparationFailed("environment", f"There is no Python at {python} on this node.")
    if spec["kind"] == "system":
        return str(python)
    if spec["kind"] not in CACHED_KINDS:
        raise PreparationFailed(
            "environment", f"This node cannot make environments of kind {spec['kind']!r}; upgrade its agent."
        )
    return _use_cached(gang)


def _use_cached(gang: Gang) -> str:
    folder = environment_folder(gang)
    if not is_built(folder) or (is_build_order(gang) and is_uncompiled(folder)):
        return ""
    lock = os.open(f"{folder}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    # Checked again under the lock: it may just have been removed.
    if try_lock(lock, fcntl.LOCK_SH) and is_built(folder):
        gang.locks.append(lock)
        return use_environment(gang, folder)
    os.close(lock)
    return ""


def environment_folder(gang: Gang) -> str:
    """Returns the folder of the run's environment.

    An earlier version of the agent may have left an environment that belongs to the account of the runs.
    While it exists, the folder is a new one beside it, because a run that uses the old one may take days."""
    folder = f"{gang.terms['environments']}/{gang.terms['digest']}"
    account = gang.terms["account"]
    return f"{folder}{REBUILT}" if account is not None and _owner(folder) == account["uid"] else folder


def use_environment(gang: Gang, folder: str) -> str:
    """Marks an environment as used now, and reads what its activation sets. Returns its interpreter."""
    os.utime(f"{folder}/{MARKER}", follow_symlinks=False)
    if gang.order["environment"]["kind"] == "conda":
        gang.activation = records.read(f"{folder}/{ACTIVATION}") or {}
    return f"{folder}/bin/python"


def try_lock(fd: int, mode: int) -> bool:
    try:
        fcntl.flock(fd, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_built(folder: str) -> bool:
    """Returns whether the environment is complete and this account's.

    Earlier versions gave environments to the account of the runs, which could change them."""
    return (
        belongs_to_agent(folder)
        and os.path.exists(f"{folder}/{MARKER}")
        and _is_executable(f"{folder}/bin/python")
    )


def is_uncompiled(folder: str) -> bool:
    """Returns whether a complete environment has modules that are compiled later."""
    return os.path.exists(f"{folder}/{UNCOMPILED}")


def is_build_order(gang: Gang) -> bool:
    """Returns whether the order is to build the environment, and starts nothing in it."""
    return bool(gang.order.get("kind", "run") != "run")


def belongs_to_agent(folder: str) -> bool:
    return _owner(folder) == os.geteuid()


def _owner(folder: str) -> int | None:
    try:
        return os.stat(folder, follow_symlinks=False).st_uid
    except OSError:
        return None


def _is_executable(path: str) -> bool:
    return bool(path) and os.path.isfile(path) and os.access(path, os.X_OK)


def sibling(folder: str, suffix: str) -> str:
    return f"{folder}{suffix}"


def discard_environment(folder: str) -> None:
    """Removes an environment and all leftovers of its builds. The caller holds its lock exclusively."""
    for path in (folder, *(sibling(folder, suffix) for suffix in SUFFIXES)):
        removal.remove_tree(path)


def lock_exclusively(lock: str) -> int | None:
    """Returns the descriptor of the lock, held exclusively; None while a run uses the environment."""
    fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if try_lock(fd, fcntl.LOCK_EX):
        return fd
    os.close(fd)
    return None

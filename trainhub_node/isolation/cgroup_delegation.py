"""Delegates controllers of version 2 of control groups to the children of a group."""

from __future__ import annotations

import errno
from contextlib import suppress
from pathlib import Path

from trainhub_node.isolation import cgroups
from trainhub_node.isolation.cgroups import CONTROLLERS

# Holds the processes of a group that delegates controllers: only the machine's outermost group may do both.
LEAF = "trainhub-agent"
# Each time, processes may start others that have to be moved, too.
MOVE_TRIES = 10


def delegate(group: Path) -> None:
    """Delegates to the children of `group` what `group` has of the controllers that limits need. Raises
    OSError.

    The group's processes move to a child of it, where the limits of `group` hold for them as before."""
    available = _words(group / "cgroup.controllers")
    lacking = [name for name in CONTROLLERS if name in available and name not in delegated(group)]
    if lacking and not _is_outermost(group):
        _move_processes(group)
    if lacking:
        cgroups.write(str(group / "cgroup.subtree_control"), " ".join(f"+{name}" for name in lacking))


def delegated(group: Path) -> list[str]:
    """Returns the controllers that the children of `group` have."""
    return _words(group / "cgroup.subtree_control")


def reason_for_lack(group: Path, controller: str) -> str:
    """Returns why no child of `group` has the controller, as a part of a sentence."""
    if _is_outermost(group):
        return f"the kernel has no controller {controller}"
    return f"the controller {controller} is not delegated to {group}"


def _is_outermost(group: Path) -> bool:
    """Returns whether `group` is the machine's. What a container sees as the outermost is not."""
    return not (group / "cgroup.type").exists()


def _move_processes(group: Path) -> None:
    for _ in range(MOVE_TRIES):
        processes = _words(group / "cgroup.procs")
        if not processes:
            return
        (group / LEAF).mkdir(exist_ok=True)
        for process in processes:
            # 0 stands for a process outside of the agent's container; written, it would mean the agent.
            if process == "0":
                raise OSError(errno.EBUSY, "it contains processes from outside of this container", str(group))
            with suppress(ProcessLookupError):  # it has ended meanwhile
                cgroups.write(str(group / LEAF / "cgroup.procs"), process)


def _words(file: Path) -> list[str]:
    return file.read_text(encoding="ascii").split()

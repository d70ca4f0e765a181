"""Limits what an attempt may use, before its ranks start."""

from __future__ import annotations

import os

from trainhub_node.isolation import cgroups
from trainhub_node.supervisor.gang import PreparationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainhub_node.supervisor.gang import Gang


def limit(gang: Gang) -> None:
    """Sets `gang.group`, where this node has control groups. Raises PreparationFailed if the run has limits
    that cannot be set."""
    memory, cpus = gang.order.get("memory_bytes"), gang.order.get("cpus")
    place = gang.terms.get("cgroup")
    try:
        if place is not None:
            limits = cgroups.Limits(memory=memory, cpus=cpus, ranks=len(gang.processes))
            gang.group = cgroups.Group(place, group_name(gang.folder.path), limits)
            _wait_for_kernel(gang.group)
    except OSError as error:
        if place is not None and gang.group is None:
            # Those made before the kernel refused one.
            cgroups.remove(place, group_name(gang.folder.path))
        if memory is not None or cpus is not None:
            raise PreparationFailed(
                "launch", _refusal(gang, f"{error.filename}: {error.strerror}")
            ) from error
        gang.log(f"This run has no limits of resources: {error.filename}: {error.strerror}.")
        return
    is_held = place is not None or gang.terms.get("outer_limits")
    if not is_held and (memory is not None or cpus is not None):
        raise PreparationFailed("launch", _refusal(gang, "it has no control groups"))


def _wait_for_kernel(group: cgroups.Group) -> None:
    """Starts a process that enters the groups and ends. The supervisor reaps it.

    The first process that enters a group after a pause waits for the kernel, some 10 ms. This one does that
    while the rest is prepared, so that the ranks need not."""
    if os.fork() == 0:
        try:
            group.enter()
        finally:
            os._exit(0)


def group_name(path: str) -> str:
    """Returns the name of the groups of the attempt in the folder `path`."""
    return os.path.basename(path)


def _refusal(gang: Gang, why: str) -> str:
    return f"Node {gang.terms['node']} cannot limit memory and CPU cores for this run: {why}."

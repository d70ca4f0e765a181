"""Says at the end of an attempt which limits it has reached."""

from __future__ import annotations

from trainhub_launch.scheduler.sizes import bytes_text
from trainhub_node.isolation import cgroups
from trainhub_node.supervisor.gang import Gang
from trainhub_node.supervisor.limits import group_name


def report(gang: Gang) -> None:
    """Warns of limits that the run has reached, and removes its groups. Called when its processes have
    ended."""
    group = gang.group
    if group is None:
        return
    if group.oom_kills():
        peak = group.peak_memory()
        used = "It reached its limit of memory" if peak is None else f"It used {bytes_text(peak)} of memory"
        of = f" of {bytes_text(group.limits.memory)}" if group.limits.memory is not None else ""
        gang.warn(f"{used}{of} on {gang.terms['node']}, and the kernel killed processes of it for that.")
    if group.refused_forks():
        most = f"{group.limits.pids:,} processes and threads"
        gang.warn(f"It reached its limit of {most} on {gang.terms['node']}; no more could be started.")
    cgroups.remove(gang.terms["cgroup"], group_name(gang.folder.path))

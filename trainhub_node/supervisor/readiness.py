"""A run on several nodes: this one has prepared its part, says what it has, and waits until all have."""

from __future__ import annotations

from trainhub_launch.report import READY
from trainhub_node.supervisor import child, mpi_launcher, versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainhub_node.supervisor.gang import Gang


def reach(gang: Gang) -> None:
    """Ready, then on with the final order. Raises Refused, and Stopped when the end is asked for
    meanwhile."""
    env = None
    if gang.under_mpi:
        env = mpi_launcher.environment(gang)
        mpi_launcher.program(gang, env, *mpi_launcher.programs_wanted(gang))
    gang.state["versions"] = versions.of(gang, env)
    gang.check_stop()
    gang.enter(READY)
    gang.note("Ready; waiting until every node of the run is.")
    gang.order = child.awaited(gang, gang.folder.go)

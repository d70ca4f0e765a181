"""A run on several nodes: this node reports that its part is prepared, and waits for all others."""

from __future__ import annotations

from trainhub_node.supervisor import child, mpi_launcher, versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainhub_node.supervisor.gang import Gang


def wait_until_ready(gang: Gang) -> None:
    """Reports that this node is ready, and waits for the final order, which replaces the first one.

    Raises PreparationFailed, and StopRequested when a stop request arrives."""
    # A node that lacks Open MPI must say so before other nodes wait for it.
    env = None
    if gang.uses_mpi:
        env = mpi_launcher.launcher_environment(gang)
        mpi_launcher.require_program(gang, env, *mpi_launcher.required_programs(gang))
    gang.state["versions"] = versions.software_versions(gang, env)
    gang.check_stop()
    gang.enter("ready")
    gang.log("Ready; waiting until every node of the run is.")
    gang.order = child.wait_for_record(gang, gang.folder.go)

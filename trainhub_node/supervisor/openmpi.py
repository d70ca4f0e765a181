"""The arguments of Open MPI's daemons, version 4 (orted) and 5 (prted).

They come from another machine, where training code may have changed them. So only known names are
accepted."""

from __future__ import annotations

from trainhub_node.supervisor.gang import PreparationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Daemons detach themselves otherwise; then their end could not be seen, and they would outlive the run.
FOREGROUND_OPTIONS = {
    "orted": ("-mca", "orte_leave_session_attached", "1"),
    "prted": ("--leave-session-attached",),
}
DAEMONS = tuple(FOREGROUND_OPTIONS)
PARAMETER_OPTIONS = ("-mca", "--mca", "-prtemca", "--prtemca", "-pmixmca", "--pmixmca")
# What mpirun of versions 4 and 5 sends to a daemon. Everything else is refused: the call comes from a process
# that the run controls, and some parameters name programs to run.
ALLOWED_PARAMETERS = frozenset(
    {
        "ess",
        "ess_base_jobid",
        "ess_base_nspace",
        "ess_base_num_procs",
        "ess_base_vpid",
        "orte_hnp_uri",
        "orte_node_regex",
        "prte_hnp_uri",
        "pmix",
        "pmix_session_server",
        "plm",
        "PREFIXES",
        "mpi_yield_when_idle",
        "rmaps_base_mapping_policy",
        "rmaps_default_mapping_policy",
        "hwloc_base_binding_policy",
        "hwloc_default_binding_policy",
    }
)
IGNORED_PARAMETERS = frozenset(
    {
        # They name a program to run,
        "plm_rsh_agent",
        "plm_ssh_agent",
        "plm_rsh_no_tree_spawn",
        "plm_ssh_no_tree_spawn",
        "orte_launch_agent",
        "prte_launch_agent",
        # or are for each node to decide.
        "oob_tcp_if_include",
        "btl_tcp_if_include",
        "orte_leave_session_attached",
        "prte_leave_session_attached",
    }
)
IGNORED_OPTIONS = frozenset({"--leave-session-attached", "--allow-run-as-root", "--daemonize"})


def daemon_argv(requested: Sequence[str]) -> list[str]:
    """Returns `requested`, which starts with the daemon's name, without what this node sets itself.

    Raises PreparationFailed for unknown arguments."""
    name = requested[0] if requested else ""
    if name not in DAEMONS:
        raise PreparationFailed(
            "launch", f"mpirun asked for a daemon {name!r}, which is none of Open MPI 4 or 5."
        )
    argv = [name, *FOREGROUND_OPTIONS[name]]
    rest = iter(requested[1:])
    for option in rest:
        if option in IGNORED_OPTIONS:
            continue
        if option not in PARAMETER_OPTIONS:
            raise PreparationFailed(
                "launch", f"mpirun asked for {name} with {option!r}, which this node does not allow."
            )
        parameter, value = next(rest, ""), next(rest, "")
        if parameter in ALLOWED_PARAMETERS:
            argv += [option, parameter, value]
        elif parameter not in IGNORED_PARAMETERS:
            raise PreparationFailed(
                "launch",
                f"mpirun asked for {name} with the parameter {parameter!r}, which this node does not allow.",
            )
    return argv

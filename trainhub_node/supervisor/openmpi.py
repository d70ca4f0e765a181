"""Open MPI 4 (orted) and 5 (prted), as far as a node must know them apart: what a daemon may be told by
mpirun.

The arguments come from another machine, where training code may have had a hand in them. So they are taken by
name."""

from __future__ import annotations

from trainhub_node.supervisor.gang import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

STAY = {"orted": ("-mca", "orte_leave_session_attached", "1"), "prted": ("--leave-session-attached",)}
DAEMONS = tuple(STAY)
SETTERS = ("-mca", "--mca", "-prtemca", "--prtemca", "-pmixmca", "--pmixmca")
ALLOWED = frozenset(
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
OURS = frozenset(
    {
        # A program of the caller's choice,
        "plm_rsh_agent",
        "plm_ssh_agent",
        "plm_rsh_no_tree_spawn",
        "plm_ssh_no_tree_spawn",
        "orte_launch_agent",
        "prte_launch_agent",
        # and what is for each node to say.
        "oob_tcp_if_include",
        "btl_tcp_if_include",
        "orte_leave_session_attached",
        "prte_leave_session_attached",
    }
)
OURS_ALONE = frozenset({"--leave-session-attached", "--allow-run-as-root", "--daemonize"})


def daemon_argv(asked: Sequence[str]) -> list[str]:
    """`asked`, the daemon's name first, without what this node says itself. Raises Refused for what it does
    not know."""
    name = asked[0] if asked else ""
    if name not in DAEMONS:
        raise Refused("launch", f"mpirun asked for a daemon {name!r}, which is none of Open MPI 4 or 5.")
    argv = [name, *STAY[name]]
    words = iter(asked[1:])
    for word in words:
        if word in OURS_ALONE:
            continue
        if word not in SETTERS:
            raise Refused("launch", f"mpirun asked for {name} with {word!r}, which this node does not allow.")
        parameter, value = next(words, ""), next(words, "")
        if parameter in ALLOWED:
            argv += [word, parameter, value]
        elif parameter not in OURS:
            raise Refused(
                "launch",
                f"mpirun asked for {name} with the parameter {parameter!r}, which this node does not allow.",
            )
    return argv

"""The environment contract: the variables that every process gets, whatever its framework."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from trainhub_launch.errors import SpecError
from trainhub_launch.plan import EnvValue, Reference
from trainhub_launch.processes import mlflow
from trainhub_launch.scheduler.placement import PlacedNode, Placement
from trainhub_launch.spec import RunSpec

# The port that Azure ML always uses. If it is not free, the first free one above it is taken.
MASTER_PORT = 6105

LOOPBACK = "127.0.0.1"

# Names of the contract that tune a process and do not say who it is: the user's own value wins.
#
# Each framework may have more of them.
DEFAULTS = (
    frozenset(
        {
            "OMP_NUM_THREADS",
            "PYTHONUNBUFFERED",
            "PYTHONPATH",
            "NCCL_IB_DISABLE",
            "NCCL_SOCKET_IFNAME",
            "GLOO_SOCKET_IFNAME",
            "ACCELERATE_USE_CPU",
        }
    )
    | mlflow.DEFAULTS
)

Ports = Mapping[str, Sequence[int]]


def common(
    node: PlacedNode, placement: Placement, *, processes: int, visible: Sequence[str]
) -> dict[str, EnvValue]:
    """Returns the variables of one process on `node`. `processes` of them share the node's cores; `visible`
    are the UUIDs of the GPUs that this one sees."""
    env: dict[str, EnvValue] = {
        "TRAINHUB_RUN_ID": Reference("launch", "run_id"),
        "TRAINHUB_ATTEMPT": Reference("launch", "attempt"),
        "TRAINHUB_URL": Reference("launch", "url"),
        "TRAINHUB_TOKEN": Reference("launch", "token"),
        "TRAINHUB_CHECKPOINT_DIR": Reference("launch", "checkpoint_dir"),
        # Otherwise Python buffers what it writes to a file, and log lines reach the hub late.
        "PYTHONUNBUFFERED": "1",
        # The node's folder holds a sitecustomize that Python imports at the start of every process.
        "PYTHONPATH": Reference("launch", "node_dir"),
        # By default each process would start a thread per core of the machine, whoever else runs there.
        "OMP_NUM_THREADS": str(max(1, node.cores // max(1, processes))),
        # Empty, not absent: without the variable a run without GPUs would see all GPUs, also those of other
        # runs.
        "CUDA_VISIBLE_DEVICES": ",".join(visible),
    }
    if not visible:
        # Without it the Hugging Face Trainer trains N separate models and calls that a success.
        env["ACCELERATE_USE_CPU"] = "true"
    return env | _network(node, placement)


def _network(node: PlacedNode, placement: Placement) -> dict[str, EnvValue]:
    if len(placement.nodes) == 1:
        return {}
    env: dict[str, EnvValue] = {}
    if node.interface:
        # Without it gloo binds whatever the host's own name resolves to, often 127.0.0.1, and dies.
        env["GLOO_SOCKET_IFNAME"] = env["NCCL_SOCKET_IFNAME"] = node.interface
    if not all(placed.infiniband for placed in placement.nodes):
        # NCCL needs the same transport on all nodes, so one node without InfiniBand rules it out for all.
        env["NCCL_IB_DISABLE"] = "1"
    return env


def network_notes(placement: Placement) -> tuple[str, ...]:
    """Returns sentences about the interfaces and InfiniBand of a placement on several nodes."""
    nodes = placement.nodes
    if len(nodes) == 1:
        return ()
    without = [node.name for node in nodes if not node.infiniband]
    notes = [
        f"InfiniBand is switched off (NCCL_IB_DISABLE=1): no active port on {', '.join(without)}."
        if without
        else "InfiniBand is used: every node of the run reports an active port."
    ]
    unknown = [node.name for node in nodes if not node.interface]
    if unknown:
        notes.append(
            f"No network interface is known for {', '.join(unknown)}; if its ranks cannot reach the others, "
            "set TRAINHUB_NODE_INTERFACE on that node."
        )
    return tuple(notes)


def address(node: PlacedNode, placement: Placement) -> str:
    """Returns the address at which other processes reach `node`. It is the loopback for a run on one node,
    which does not depend on the network then."""
    return LOOPBACK if len(placement.nodes) == 1 else node.address


def master(placement: Placement, ports: Ports) -> tuple[dict[str, EnvValue], dict[str, int]]:
    """Returns the variables MASTER_ADDR and MASTER_PORT, and the port as `LaunchPlan.ports` stores it. Raises
    SpecError if the head has no free port."""
    env: dict[str, EnvValue] = {"MASTER_ADDR": address(placement.head, placement)}
    # A preview: the port is only known when the run is launched.
    if not ports:
        return env | {"MASTER_PORT": Reference("launch", "port")}, {}
    free = ports.get(placement.head.name, ())
    if not free:
        raise SpecError(
            "distribution",
            f"{placement.head.name}, the head of the run, has no free port from {MASTER_PORT} on",
        )
    port = MASTER_PORT if MASTER_PORT in free else free[0]
    return env | {"MASTER_PORT": str(port)}, {"MASTER_PORT": port}


def user_variables(
    spec: RunSpec, contract: Mapping[str, EnvValue], provided: Mapping[str, str], overridable: Collection[str]
) -> dict[str, EnvValue]:
    """Returns the user's own variables. Raises SpecError for one that would change the identity of a process,
    such as its rank.

    `overridable`: names of the spec's framework that the user may set, in addition to DEFAULTS."""
    env: dict[str, EnvValue] = {}
    for name, variable in spec.environment_variables.items():
        if is_reserved(name, contract, provided, overridable):
            raise SpecError(f"environment_variables.{name}", reserved_sentence(name))
        env[name] = (
            Reference("secret", variable.secret) if variable.secret is not None else variable.value or ""
        )
    return env


def is_reserved(
    name: str, contract: Mapping[str, EnvValue], provided: Mapping[str, str], overridable: Collection[str]
) -> bool:
    if name.startswith("TRAINHUB_") or name in provided or mlflow.is_reserved(name, contract):
        return True
    return name in contract and name not in DEFAULTS and name not in overridable


def reserved_sentence(name: str) -> str:
    ours = f"{name} is set by TrainHub for each process of this run; remove it here and read it in the script"
    return mlflow.reserved_sentence(name) or ours

"""Variables that torchrun's own restarts need (tested with torch 2.13)."""

from __future__ import annotations

from trainhub_launch.plan import EnvValue
from trainhub_launch.processes.launchers import Launcher, launcher
from trainhub_launch.scheduler.placement import Placement
from trainhub_launch.spec import RunSpec

# The names that `variables` may set. A user's own value has precedence.
OVERRIDABLE = frozenset({"TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "PET_RDZV_CONF", "PET_LOCAL_ADDR"})
TORCHRUN = frozenset({"torchrun", "torch.distributed.run", "torch.distributed.launch"})


def restarts(spec: RunSpec) -> int:
    """Returns how often the user's torchrun may restart its processes; 0 without torchrun."""
    torchrun = _torchrun(spec)
    times = torchrun.option("--max-restarts") if torchrun else None
    return int(times) if times is not None and times.isdecimal() else 0


def is_dynamic(torchrun: Launcher) -> bool:
    """Returns whether torchrun uses a rendezvous that can be repeated, as every restart requires; the static
    one cannot."""
    return torchrun.option("--rdzv-backend") == "c10d" or "--standalone" in torchrun.options


def variables(spec: RunSpec, placement: Placement, node_rank: int) -> dict[str, EnvValue]:
    """Returns the variables for the launcher on one node. The launcher's own options have precedence over
    them."""
    env: dict[str, EnvValue] = {}
    torchrun = _torchrun(spec)
    if torchrun is None:
        return env
    if restarts(spec):
        # Without it the second attempt reads the addresses that the first one left in the shared store.
        env["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    if torchrun.option("--rdzv-backend") == "c10d" and len(placement.nodes) > 1:
        # Otherwise the head hosts the store only if its own name resolves to the endpoint, and all nodes wait
        # for ever.
        env["PET_RDZV_CONF"] = f"is_host={int(node_rank == 0)}"
        # Otherwise torchrun advertises the host's own name, which other nodes may not be able to resolve.
        env["PET_LOCAL_ADDR"] = placement.nodes[node_rank].address
    return env


def _torchrun(spec: RunSpec) -> Launcher | None:
    program = launcher(spec.command)
    return program if program and program.program in TORCHRUN else None
